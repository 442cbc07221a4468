// The GPUs that the library holds code for, as the build names them: "sm_90 compute_90", or "" without a GPU part.
extern "C" __attribute__((visibility("default"), weak)) const char* headcount_kernels_gpu() {
  return HEADCOUNT_GPU_TARGETS;
}
