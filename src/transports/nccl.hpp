// NCCL's functions, looked up in the library at run time. Defines TASUKI_NCCL if NCCL's header is there at compile
// time.
#pragma once

#if __has_include(<nccl.h>)
#include <cuda_runtime.h>
#include <nccl.h>

#include <string>

#include "support/dynamic_library.hpp"
#include "tasuki/error.hpp"
#define TASUKI_NCCL 1

namespace tasuki {

struct Nccl {
  decltype(&ncclGetVersion) version = nullptr;
  decltype(&ncclGetUniqueId) get_unique_id = nullptr;
  decltype(&ncclCommInitRank) init = nullptr;
  decltype(&ncclCommAbort) abort = nullptr;
  decltype(&ncclGroupStart) group_start = nullptr;
  decltype(&ncclGroupEnd) group_end = nullptr;
  decltype(&ncclSend) send = nullptr;
  decltype(&ncclRecv) recv = nullptr;
  decltype(&ncclGetErrorString) error = nullptr;
  std::string why_not;  ///< The functions may be called only if this is empty.

  static const Nccl& get() {
    static const Nccl library;
    return library;
  }

  /// Throws `Error` with the call, the current GPU and NCCL's words for `code` unless that is success.
  void check(ncclResult_t code, const char* call) const {
    if (code == ncclSuccess) return;
    int device = -1;
    cudaGetDevice(&device);
    throw Error(ErrorKind::system, std::string(call) + " on GPU " + std::to_string(device) + " failed: " + error(code) +
                                       "; NCCL_DEBUG=WARN says more");
  }

 private:
  Nccl() {
    DynamicLibrary library("NCCL", "libnccl.so.2");
    library.find(version, "ncclGetVersion");
    library.find(get_unique_id, "ncclGetUniqueId");
    library.find(init, "ncclCommInitRank");
    library.find(abort, "ncclCommAbort");
    library.find(group_start, "ncclGroupStart");
    library.find(group_end, "ncclGroupEnd");
    library.find(send, "ncclSend");
    library.find(recv, "ncclRecv");
    library.find(error, "ncclGetErrorString");
    why_not = library.why_not();
  }
};

}  // namespace tasuki
#endif
