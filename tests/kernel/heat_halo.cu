// The program of docs/kernels.md, on GPUs.
#include "examples/heat_halo_kernel.cpp"
