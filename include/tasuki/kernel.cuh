// What a kernel includes to communicate by itself: put, signal, word, packet, barrier and small collectives of a Team,
// messages with tags, and persistent operations. docs/kernels.md shows how; tasuki/kernel.hpp is what the host needs.
// Header only: nothing to link on the GPU.
//
// The same source compiles by nvcc, by NVRTC (with this include folder and no other) and as ordinary C++20, where
// blocks are threads of the host, so that a kernel's communication runs under a debugger and the sanitizers.
//
// Rules. All ranks of a team must run their kernels at the same time, and all blocks of a kernel that waits must have
// room on the GPU at once: launch it with tasuki::launch_resident. A call is made by all threads of its group, with
// equal arguments. A call that returns false has ended for good: leave the kernel; the host is told why.
#pragma once

#include "tasuki/kernel/exchange.cuh"
#include "tasuki/kernel/messages.cuh"
#include "tasuki/kernel/plan.cuh"
#include "tasuki/kernel/steps.cuh"
