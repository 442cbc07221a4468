// The few calls of the CUDA driver that are needed, found at run time: the library links against nothing of CUDA.
#pragma once
#include <dlfcn.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

namespace headcount {

struct Driver {
  using Result = int;  // CUresult
  using Device = int;
  using Handle = void*;  // of a context, module, function or stream
  using Address = unsigned long long;

  Result (*stream_context)(Handle, Handle*) = nullptr;
  Result (*push_context)(Handle) = nullptr;
  Result (*pop_context)(Handle*) = nullptr;
  Result (*current_device)(Device*) = nullptr;
  Result (*device_attribute)(int*, int, Device) = nullptr;
  Result (*load_module)(Handle*, const void*) = nullptr;
  Result (*find_function)(Handle*, Handle, const char*) = nullptr;
  Result (*set_function_attribute)(Handle, int, int) = nullptr;
  Result (*blocks_per_processor)(int*, Handle, int, size_t) = nullptr;
  Result (*launch)(Handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, Handle, void**,
                   void**) = nullptr;
  Result (*launch_together)(Handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, Handle,
                            void**) = nullptr;
  Result (*set_words)(Address, unsigned, size_t, Handle) = nullptr;
  Result (*copy)(Address, Address, size_t, Handle) = nullptr;
  Result (*make_stream)(Handle*, unsigned) = nullptr;
  Result (*make_event)(Handle*, unsigned) = nullptr;
  Result (*record_event)(Handle, Handle) = nullptr;
  Result (*wait_for_event)(Handle, Handle, unsigned) = nullptr;
  Result (*error_text)(Result, const char**) = nullptr;
  std::string missing;  // what is not there; empty when all is

  static const Driver& get() {
    static const Driver driver;
    return driver;
  }

  std::string text(Result result) const {
    const char* words = nullptr;
    if (error_text) error_text(result, &words);
    return words ? words : "error " + std::to_string(result);
  }

 private:
  Driver() {
    void* library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!library) {
      missing = "libcuda.so.1";
      return;
    }
    auto find = [&](auto& function, const char* name) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
      if (!function && missing.empty()) missing = name;
    };
    find(stream_context, "cuStreamGetCtx");
    find(push_context, "cuCtxPushCurrent_v2");
    find(pop_context, "cuCtxPopCurrent_v2");
    find(current_device, "cuCtxGetDevice");
    find(device_attribute, "cuDeviceGetAttribute");
    find(load_module, "cuModuleLoadData");
    find(find_function, "cuModuleGetFunction");
    find(set_function_attribute, "cuFuncSetAttribute");
    find(blocks_per_processor, "cuOccupancyMaxActiveBlocksPerMultiprocessor");
    find(launch, "cuLaunchKernel");
    find(launch_together, "cuLaunchCooperativeKernel");
    find(set_words, "cuMemsetD32Async");
    find(copy, "cuMemcpyDtoDAsync_v2");
    find(make_stream, "cuStreamCreate");
    find(make_event, "cuEventCreate");
    find(record_event, "cuEventRecord");
    find(wait_for_event, "cuStreamWaitEvent");
    find(error_text, "cuGetErrorString");
  }
};

}  // namespace headcount
