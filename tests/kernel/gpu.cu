// The tests of kernels, on GPUs.
#include "exchange.cpp"
#include "launches.cpp"
#include "misuse.cpp"
#include "misuse_arguments.cpp"
#include "primitives.cpp"
#include "proxy.cpp"
#include "shapes.cpp"
#include "version.cpp"
