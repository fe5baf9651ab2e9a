// Memory and events between processes.
#include "gpu/ipc.hpp"

#include <mpi.h>

#include "gpu/problem.hpp"
#include "tasuki/cuda.cuh"

namespace bench {
namespace {

void need_one_host(const tasuki::Context& context) {
  MPI_Comm host = MPI_COMM_NULL;
  MPI_Comm_split_type(context.comm(), MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host);
  int size = 0;
  MPI_Comm_size(host, &size);
  MPI_Comm_free(&host);
  together(context, [&] {
    if (size != context.size()) throw tasuki::Error("the ranks are on several hosts");
  });
}

}  // namespace

PeerMemory::PeerMemory(const tasuki::Context& context, std::byte* mine)
    : seen_(static_cast<std::size_t>(context.size())) {
  need_one_host(context);
  cudaIpcMemHandle_t handle{};
  together(context, [&] { TASUKI_CUDA(cudaIpcGetMemHandle, &handle, mine); });
  std::vector<cudaIpcMemHandle_t> all(seen_.size());
  MPI_Allgather(&handle, sizeof handle, MPI_BYTE, all.data(), sizeof handle, MPI_BYTE, context.comm());
  together(context, [&] {
    for (std::size_t rank = 0; rank < seen_.size(); ++rank) {
      if (static_cast<int>(rank) == context.rank()) {
        seen_[rank] = {mine, [](std::byte*) {}};
        continue;
      }
      void* p = nullptr;
      TASUKI_CUDA(cudaIpcOpenMemHandle, &p, all[rank], cudaIpcMemLazyEnablePeerAccess);
      seen_[rank] = {static_cast<std::byte*>(p), [](std::byte* m) { cudaIpcCloseMemHandle(m); }};
    }
  });
}

PeerEvents::PeerEvents(const tasuki::Context& context)
    : mine_(static_cast<std::size_t>(context.size())), theirs_(static_cast<std::size_t>(context.size())) {
  need_one_host(context);
  const auto destroy = [](cudaEvent_t event) { cudaEventDestroy(event); };
  std::vector<cudaIpcEventHandle_t> given(mine_.size());
  together(context, [&] {
    for (std::size_t waiter = 0; waiter < mine_.size(); ++waiter) {
      cudaEvent_t event = nullptr;
      TASUKI_CUDA(cudaEventCreateWithFlags, &event, cudaEventDisableTiming | cudaEventInterprocess);
      mine_[waiter] = {event, destroy};
      TASUKI_CUDA(cudaIpcGetEventHandle, &given[waiter], event);
    }
  });
  std::vector<cudaIpcEventHandle_t> taken(mine_.size());
  MPI_Alltoall(given.data(), sizeof(cudaIpcEventHandle_t), MPI_BYTE, taken.data(), sizeof(cudaIpcEventHandle_t),
               MPI_BYTE, context.comm());
  together(context, [&] {
    for (std::size_t rank = 0; rank < theirs_.size(); ++rank) {
      if (static_cast<int>(rank) == context.rank()) continue;
      cudaEvent_t event = nullptr;
      TASUKI_CUDA(cudaIpcOpenEventHandle, &event, taken[rank]);
      theirs_[rank] = {event, destroy};
    }
  });
}

}  // namespace bench
