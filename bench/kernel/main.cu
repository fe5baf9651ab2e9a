// tasuki-bench-kernel on GPUs.
#include "main.cpp"
