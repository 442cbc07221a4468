/* Ends the process, or fails, at the N-th system call that makes something last below a folder.
 *
 *   FAULTS_FOLDER  the folder; nothing is counted without it
 *   FAULTS_AT      which call, from 1; 0 only counts
 *   FAULTS_MODE    before | after (SIGKILL before or after the call), EIO | ENOSPC (this call and all later ones fail)
 *   FAULTS_TRACE   a file outside the folder: a line "name path" per call
 *
 * cc -shared -fPIC -o libsyscalls.so syscalls.c -ldl, then LD_PRELOAD=libsyscalls.so
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

static atomic_int calls;

enum { GO_ON, KILL_AFTER, FAIL };

static int below(const char *path) {
    const char *folder = getenv("FAULTS_FOLDER");
    if (!folder || !*folder || !path) return 0;
    size_t length = strlen(folder);
    return strncmp(path, folder, length) == 0 && (path[length] == '/' || path[length] == 0);
}

static int decide(const char *name, const char *path) {
    const char *at = getenv("FAULTS_AT"), *mode = getenv("FAULTS_MODE"), *trace = getenv("FAULTS_TRACE");
    int number = atomic_fetch_add(&calls, 1) + 1, asked = at ? atoi(at) : 0;
    if (trace && *trace) {
        int file = syscall(SYS_openat, AT_FDCWD, trace, O_WRONLY | O_APPEND | O_CREAT, 0644);
        if (file >= 0) {
            char line[PATH_MAX + 64];
            int length = snprintf(line, sizeof line, "%s %s\n", name, path);
            if (syscall(SYS_write, file, line, length) < 0) { /* a trace is only a help */ }
            syscall(SYS_close, file);
        }
    }
    if (!asked || !mode || number < asked) return GO_ON;
    if (mode[0] == 'E') {
        errno = strcmp(mode, "EIO") == 0 ? EIO : ENOSPC;
        return FAIL;
    }
    if (number > asked) return GO_ON;
    if (strcmp(mode, "before") == 0) kill(getpid(), SIGKILL);
    return KILL_AFTER;
}

static int decide_path(const char *name, const char *path) { return below(path) ? decide(name, path) : GO_ON; }

static int decide_file(const char *name, int file) {
    char link[64], path[PATH_MAX];
    if (!getenv("FAULTS_FOLDER")) return GO_ON;
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length <= 0) return GO_ON;
    path[length] = 0;
    return decide_path(name, path);
}

static void then(int decision) {
    if (decision == KILL_AFTER) kill(getpid(), SIGKILL);
}

#define REAL(type, name, ...)                                   \
    static type (*real)(__VA_ARGS__);                           \
    if (!real) real = (type(*)(__VA_ARGS__))dlsym(RTLD_NEXT, name)

#define WRAP(type, name, decision, parameters, arguments, ...)  \
    type name parameters {                                      \
        REAL(type, #name, __VA_ARGS__);                         \
        int decided = decision;                                 \
        if (decided == FAIL) return -1;                         \
        type result = real arguments;                           \
        then(decided);                                          \
        return result;                                          \
    }

WRAP(int, fsync, decide_file("fsync", file), (int file), (file), int)
WRAP(int, fdatasync, decide_file("fdatasync", file), (int file), (file), int)
WRAP(ssize_t, write, decide_file("write", file), (int file, const void *data, size_t size), (file, data, size), int,
     const void *, size_t)
WRAP(ssize_t, pwrite, decide_file("pwrite", file), (int file, const void *data, size_t size, off_t at),
     (file, data, size, at), int, const void *, size_t, off_t)
WRAP(ssize_t, pwrite64, decide_file("pwrite", file), (int file, const void *data, size_t size, off64_t at),
     (file, data, size, at), int, const void *, size_t, off64_t)
WRAP(int, ftruncate, decide_file("ftruncate", file), (int file, off_t size), (file, size), int, off_t)
WRAP(int, ftruncate64, decide_file("ftruncate", file), (int file, off64_t size), (file, size), int, off64_t)
WRAP(int, rename, decide_path("rename", to), (const char *from, const char *to), (from, to), const char *, const char *)
WRAP(int, renameat, decide_path("rename", to), (int in, const char *from, int into, const char *to),
     (in, from, into, to), int, const char *, int, const char *)
WRAP(int, link, decide_path("link", to), (const char *from, const char *to), (from, to), const char *, const char *)
WRAP(int, unlink, decide_path("unlink", path), (const char *path), (path), const char *)
WRAP(int, unlinkat, decide_path("unlink", path), (int in, const char *path, int flags), (in, path, flags), int,
     const char *, int)
WRAP(int, mkdir, decide_path("mkdir", path), (const char *path, mode_t mode), (path, mode), const char *, mode_t)
WRAP(int, mkdirat, decide_path("mkdir", path), (int in, const char *path, mode_t mode), (in, path, mode), int,
     const char *, mode_t)

/* A file that is opened counts where it is created by that. */
#define OPEN(name)                                                                    \
    int name(const char *path, int flags, ...) {                                      \
        REAL(int, #name, const char *, int, ...);                                     \
        mode_t mode = 0;                                                              \
        if (flags & (O_CREAT | O_TMPFILE)) {                                          \
            va_list rest;                                                             \
            va_start(rest, flags);                                                    \
            mode = va_arg(rest, mode_t);                                              \
            va_end(rest);                                                             \
        }                                                                             \
        int creates = (flags & O_CREAT) && below(path) && access(path, F_OK) != 0;    \
        int decided = creates ? decide("create", path) : GO_ON;                       \
        if (decided == FAIL) return -1;                                               \
        int result = real(path, flags, mode);                                         \
        then(decided);                                                                \
        return result;                                                                \
    }
OPEN(open)
OPEN(open64)
