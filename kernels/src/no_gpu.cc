// Built in place of bind_gpu.cc where there is no nvcc: the library then has no GPU handlers and names no GPU targets.
extern "C" __attribute__((visibility("default"))) const char* headcount_kernels_gpu() { return ""; }
