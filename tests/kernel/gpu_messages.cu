// The tests of kernels' messages, on GPUs.
#include "messages.cpp"
#include "messages_by_host.cpp"
