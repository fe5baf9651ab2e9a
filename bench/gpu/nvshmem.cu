// Peer `nvshmem`: one kernel packs what goes to all neighbours, a put with signal carries a message to each into
// symmetric memory, a wait for each neighbour's signal, one kernel unpacks. All are calls of the host's library, in
// stream order.
#include <mpi.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <set>

#include "case.hpp"
#include "gpu/device_memory.cuh"
#include "gpu/messages.hpp"
#include "support/dynamic_library.hpp"

#if __has_include(<nvshmem_host.h>)
#include <nvshmem_host.h>
#define BENCH_NVSHMEM 1
#ifndef BENCH_NVSHMEM_LIBRARY
#define BENCH_NVSHMEM_LIBRARY ""
#endif
#endif

namespace bench {

#ifdef BENCH_NVSHMEM

namespace {

// The functions of the host's library, which needs no device code of the program.
struct Nvshmem {
  decltype(&nvshmemx_vendor_get_version_info) version = nullptr;
  decltype(&nvshmemx_get_uniqueid) get_unique_id = nullptr;
  decltype(&nvshmemx_set_attr_uniqueid_args) set_unique_id = nullptr;
  decltype(&nvshmemx_hostlib_init_attr) init = nullptr;
  decltype(&nvshmemx_init_status) status = nullptr;
  decltype(&nvshmemx_hostlib_finalize) finalize = nullptr;
  decltype(&nvshmem_malloc) malloc = nullptr;
  decltype(&nvshmem_ptr) mapped = nullptr;
  decltype(&nvshmemx_putmem_signal_on_stream) put_signal = nullptr;
  decltype(&nvshmemx_signal_op_on_stream) signal = nullptr;
  decltype(&nvshmemx_signal_wait_until_on_stream) wait = nullptr;
  std::string why_not;

  static const Nvshmem& get() {
    static const Nvshmem library;
    return library;
  }

 private:
  Nvshmem() {
    // Multicast serves only its collectives, and can leave the GPUs of a host unusable. GPUs that reach each other need
    // no transport, nor a thread that polls beside all other peers. Room is needed for two runners with two buffers of
    // 1 GiB, and for smaller ones.
    setenv("NVSHMEM_DISABLE_NVLS", "1", 1);
    setenv("NVSHMEM_REMOTE_TRANSPORT", "none", 0);
    setenv("NVSHMEM_DISABLE_LOCAL_ONLY_PROXY", "1", 0);
    setenv("NVSHMEM_SYMMETRIC_SIZE", "8G", 0);
    tasuki::DynamicLibrary library("NVSHMEM", "libnvshmem_host.so.3", BENCH_NVSHMEM_LIBRARY);
    library.find(version, "nvshmemx_vendor_get_version_info");
    library.find(get_unique_id, "nvshmemx_get_uniqueid");
    library.find(set_unique_id, "nvshmemx_set_attr_uniqueid_args");
    library.find(init, "nvshmemx_hostlib_init_attr");
    library.find(status, "nvshmemx_init_status");
    library.find(finalize, "nvshmemx_hostlib_finalize");
    library.find(malloc, "nvshmem_malloc");
    library.find(mapped, "nvshmem_ptr");
    library.find(put_signal, "nvshmemx_putmem_signal_on_stream");
    library.find(signal, "nvshmemx_signal_op_on_stream");
    library.find(wait, "nvshmemx_signal_wait_until_on_stream");
    why_not = library.why_not();
  }
};

bool initialised = false;

// The library ends the process when ranks share a GPU, so that must be found out before.
void need_own_gpus(const tasuki::Context& context) {
  int ordinal = 0;
  cudaDeviceProp properties{};
  TASUKI_CUDA(cudaGetDevice, &ordinal);
  TASUKI_CUDA(cudaGetDeviceProperties, &properties, ordinal);
  using Uuid = std::array<char, sizeof properties.uuid>;
  std::vector<Uuid> all(static_cast<std::size_t>(context.size()));
  MPI_Allgather(&properties.uuid, sizeof(Uuid), MPI_BYTE, all.data(), sizeof(Uuid), MPI_BYTE, context.comm());
  if (std::set<Uuid>(all.begin(), all.end()).size() != all.size()) throw tasuki::Error("ranks share a GPU");
}

// Once in a process. Collective; throws on all ranks or on none.
void connect(const tasuki::Context& context) {
  const Nvshmem& nvshmem = Nvshmem::get();
  const std::string says_more = "; NVSHMEM_DEBUG=WARN says more";
  const auto call = [&](int code, const char* name) {
    together(context, [&] {
      if (code == 0) return;
      throw tasuki::Error(std::string(name) + " failed with status " + std::to_string(code) + says_more);
    });
  };
  together(context, [&] {
    if (!nvshmem.why_not.empty()) throw tasuki::Error(nvshmem.why_not);
  });
  gpu_stream(context);
  need_own_gpus(context);
  nvshmemx_uniqueid_t id = NVSHMEMX_UNIQUEID_INITIALIZER;
  call(context.is_root() ? nvshmem.get_unique_id(&id) : 0, "nvshmemx_get_uniqueid");
  MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, context.comm());
  nvshmemx_init_attr_t attributes = NVSHMEMX_INIT_ATTR_INITIALIZER;
  call(nvshmem.set_unique_id(context.rank(), context.size(), &id, &attributes), "nvshmemx_set_attr_uniqueid_args");
  call(nvshmem.init(NVSHMEMX_INIT_WITH_UNIQUEID, &attributes), "nvshmemx_hostlib_init_attr");
  // It reports success also when it could not prepare the GPU, and then ends the process at the next call.
  together(context, [&] {
    const int status = nvshmem.status();
    if (status == NVSHMEM_STATUS_IS_INITIALIZED) return;
    throw tasuki::Error("this GPU cannot be used: nvshmemx_init_status is " + std::to_string(status) + says_more);
  });
  initialised = true;
}

// What failed once is not tried again.
void need_connection(const tasuki::Context& context) {
  static const std::string why = [&]() -> std::string {
    try {
      connect(context);
    } catch (const tasuki::Error& error) {
      return error.what();
    }
    return {};
  }();
  if (!why.empty()) throw tasuki::Error(why);
}

using SymmetricMemory = std::shared_ptr<std::byte>;

// At least so many bytes, for which all ranks ask alike. Memory is used again and never given back, because giving it
// back is collective and after an error runners end on their own. Collective; throws on all ranks or on none.
SymmetricMemory symmetric_memory(const tasuki::Context& context, std::size_t bytes) {
  struct Block {
    std::byte* at;
    std::size_t bytes;
    bool used;
  };
  static std::vector<std::unique_ptr<Block>> blocks;
  const auto lease = [](Block& block) {
    block.used = true;
    return SymmetricMemory(block.at, [&block](std::byte*) { block.used = false; });
  };
  for (const auto& block : blocks) {
    if (!block->used && block->bytes >= bytes) return lease(*block);
  }
  const Nvshmem& nvshmem = Nvshmem::get();
  constexpr std::size_t kGrain = 2 << 20;
  bytes = (bytes + kGrain - 1) / kGrain * kGrain;
  auto* const at = static_cast<std::byte*>(nvshmem.malloc(bytes));
  together(context, [&] {
    if (at == nullptr) throw tasuki::Error("nvshmem_malloc of " + std::to_string(bytes) + " bytes failed");
    for (int rank = 0; rank < context.size(); ++rank) {
      if (nvshmem.mapped(at, rank) != nullptr) continue;
      throw tasuki::Error("GPU memory of rank " + std::to_string(rank) + " is not mapped here");
    }
  });
  blocks.push_back(std::make_unique<Block>(Block{at, bytes, false}));
  return lease(*blocks.back());
}

// Exchanges use two receive buffers in turn. A neighbour in both directions writes into one again only after it has the
// next message from here, which is sent after the buffer was unpacked; to others who only send, this rank says so
// ("free"). Signals are 0 or 1 and set back by the kernels that pack and unpack, so that exchanges are all alike and a
// graph of them can be replayed.
class NvshmemRunner : public Runner {
 public:
  NvshmemRunner(const GpuCase& problem, bool captured) : problem_(problem), stream_(gpu_stream(problem.context)) {
    choose_calls(captured);
    const std::vector<PackedMessage> messages = messages_of(problem);
    std::vector<std::int64_t> offsets(ranks(), 0);  // of what comes from a rank, in this one's receive buffers
    std::int64_t longest[2] = {0, 0};               // of all ranks: what is packed, what is received
    for (const PackedMessage& message : messages) {
      if (!message.sends) offsets[of(message)] = longest[1];
      if (!message.sends || !message.contiguous()) longest[message.sends ? 0 : 1] += aligned_to_16(message.bytes);
    }
    std::vector<std::int64_t> theirs(ranks(), 0);  // of what this rank sends, in theirs
    MPI_Alltoall(offsets.data(), 1, MPI_INT64_T, theirs.data(), 1, MPI_INT64_T, problem.context.comm());
    MPI_Allreduce(MPI_IN_PLACE, longest, 2, MPI_INT64_T, MPI_MAX, problem.context.comm());
    const std::size_t row = static_cast<std::size_t>(aligned_to_16(static_cast<std::int64_t>(ranks() * sizeof(Word))));
    memory_ = symmetric_memory(problem.context,
                               2 * kParities * row + static_cast<std::size_t>(longest[0] + kParities * longest[1]));
    std::byte* at = memory_.get();
    for (auto* words : {&arrived_, &free_}) {
      for (Word*& parity : *words) parity = reinterpret_cast<Word*>(std::exchange(at, at + row));
    }
    together(problem.context, [&] { prepare(messages, offsets, theirs, at, longest); });
  }

  void start() override {
    const Nvshmem& nvshmem = Nvshmem::get();
    const auto me = static_cast<std::size_t>(problem_.context.rank());
    const std::size_t p = std::exchange(parity_, 1 - parity_);
    for (const int peer : only_sent_to_) nvshmem.wait(free_[p] + peer, compare_, compare_with_, stream_);
    pack_[p]->enqueue(stream_);
    for (const Put& put : puts_) {
      nvshmem.put_signal(put.to[p], put.from, put.bytes, arrived_[p] + me, 1, signal_op_, put.peer, stream_);
    }
    for (const int peer : sources_) nvshmem.wait(arrived_[p] + peer, compare_, compare_with_, stream_);
    unpack_[p]->enqueue(stream_);
    for (const int peer : only_received_from_) nvshmem.signal(free_[p] + me, 1, signal_op_, peer, stream_);
  }
  void finish() override { finish_stream(problem_.context); }

 private:
  using Word = std::uint64_t;
  static constexpr std::size_t kParities = 2;
  struct Put {
    int peer;
    const std::byte* from;
    std::byte* to[kParities];  // symmetric address
    std::size_t bytes;
  };

  // Into a graph only kernels can go for certain: setting a signal may copy a variable of a function that has returned
  // before the replay, and drivers from CUDA 13.1 refuse the stream operation that the library would rather use, upon
  // which the library ends the process. Adding to a signal, and waiting for other than equality, are kernels.
  void choose_calls(bool captured) {
    int driver = 0;
    TASUKI_CUDA(cudaDriverGetVersion, &driver);
    signal_op_ = captured || driver >= 13010 ? NVSHMEM_SIGNAL_ADD : NVSHMEM_SIGNAL_SET;
    compare_ = captured ? NVSHMEM_CMP_NE : NVSHMEM_CMP_EQ;
    compare_with_ = captured ? 0 : 1;
  }

  void prepare(const std::vector<PackedMessage>& messages, const std::vector<std::int64_t>& offsets,
               const std::vector<std::int64_t>& theirs, std::byte* send, const std::int64_t (&longest)[2]) {
    std::byte* const receive = send + longest[0];
    std::vector<StridedCopy> pack = local_copies(problem_);
    std::vector<StridedCopy> unpack[kParities];
    std::set<int> sent_to;
    for (const PackedMessage& message : messages) {
      if (!message.sends) {
        for (std::size_t p = 0; p < kParities; ++p) {
          message.add_copies(receive + static_cast<std::int64_t>(p) * longest[1] + offsets[of(message)], unpack[p]);
        }
        sources_.push_back(message.peer);
        continue;
      }
      sent_to.insert(message.peer);
      std::byte* const to = receive + theirs[of(message)];
      const std::byte* const from = message.contiguous() ? message.boxes[0].at : send;
      puts_.push_back({message.peer, from, {to, to + longest[1]}, static_cast<std::size_t>(message.bytes)});
      if (message.contiguous()) continue;
      message.add_copies(send, pack);
      send += aligned_to_16(message.bytes);
    }
    for (const int peer : sent_to) {
      if (std::find(sources_.begin(), sources_.end(), peer) == sources_.end()) only_sent_to_.push_back(peer);
    }
    for (const int peer : sources_) {
      if (!sent_to.contains(peer)) only_received_from_.push_back(peer);
    }
    set_signals();
    for (std::size_t p = 0; p < kParities; ++p) {
      std::vector<StridedCopy> pack_here = pack;
      if (!only_sent_to_.empty()) pack_here.push_back(back_to_zero(free_[p]));
      if (!sources_.empty()) unpack[p].push_back(back_to_zero(arrived_[p]));
      pack_[p] = std::make_unique<CopyList>(pack_here);
      unpack_[p] = std::make_unique<CopyList>(unpack[p]);
    }
  }

  // As they are before the first exchange: nothing has arrived, everything is free.
  void set_signals() {
    zeros_ = device_memory(ranks() * sizeof(Word));
    const std::vector<Word> nothing(ranks(), 0);
    const std::vector<Word> all(ranks(), 1);
    for (std::size_t p = 0; p < kParities; ++p) {
      TASUKI_CUDA(cudaMemcpy, arrived_[p], nothing.data(), ranks() * sizeof(Word), cudaMemcpyHostToDevice);
      TASUKI_CUDA(cudaMemcpy, free_[p], all.data(), ranks() * sizeof(Word), cudaMemcpyHostToDevice);
    }
    TASUKI_CUDA(cudaStreamSynchronize, nullptr);
  }
  StridedCopy back_to_zero(Word* words) const {
    GpuRows rows;
    rows.row = static_cast<std::int64_t>(ranks() * sizeof(Word));
    return {zeros_.get(), reinterpret_cast<std::byte*>(words), rows, rows};
  }

  std::size_t ranks() const { return static_cast<std::size_t>(problem_.context.size()); }
  static std::size_t of(const PackedMessage& message) { return static_cast<std::size_t>(message.peer); }

  GpuCase problem_;
  tasuki::Stream stream_;
  int signal_op_ = NVSHMEM_SIGNAL_ADD;
  int compare_ = NVSHMEM_CMP_NE;
  Word compare_with_ = 0;
  SymmetricMemory memory_;
  DeviceMemory zeros_;
  std::array<Word*, kParities> arrived_{};  // a word for each rank, which that rank sets
  std::array<Word*, kParities> free_{};
  std::vector<Put> puts_;
  std::vector<int> sources_;
  std::vector<int> only_sent_to_;
  std::vector<int> only_received_from_;
  std::unique_ptr<CopyList> pack_[kParities];
  std::unique_ptr<CopyList> unpack_[kParities];
  std::size_t parity_ = 0;
};

RunnerPtr make(const GpuCase& problem, bool captured) {
  if (all_local(problem)) return nullptr;  // nothing for NVSHMEM to do
  need_connection(problem.context);
  return std::make_unique<NvshmemRunner>(problem, captured);
}

const RegisterPeer kPeer(gpu_peer("nvshmem", [](const GpuCase& problem) {
  return unless_left_out(problem, "nvshmem", [&] { return make(problem, false); });
}));
const RegisterPeer kGraph(gpu_peer(std::string("nvshmem") + kReplayed, [](const GpuCase& problem) {
  return unless_left_out(problem, std::string("nvshmem") + kReplayed,
                         [&] { return replayed(problem, make(problem, true)); });
}));

}  // namespace

std::string nvshmem_version() {
  const Nvshmem& nvshmem = Nvshmem::get();
  if (!nvshmem.why_not.empty()) return {};
  int major = 0;
  int minor = 0;
  int patch = 0;
  nvshmem.version(&major, &minor, &patch);
  return std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(patch);
}

void end_nvshmem() {
  if (initialised) Nvshmem::get().finalize();
  initialised = false;
}

#else

namespace {

const RegisterPeer kPeer(gpu_peer("nvshmem", [](const GpuCase& problem) {
  return unless_left_out(problem, "nvshmem",
                         []() -> RunnerPtr { throw tasuki::Error("built without nvshmem_host.h"); });
}));

}  // namespace

std::string nvshmem_version() {
  return {};
}

void end_nvshmem() {}

#endif

}  // namespace bench
