// Peer `nccl`: one kernel packs what goes to all neighbours, one group of sends and receives carries a message to each,
// one kernel unpacks. A message that is contiguous where it comes from or goes to is not packed there.
#include <dlfcn.h>
#include <mpi.h>

#include <type_traits>

#include "case.hpp"
#include "gpu/copy_list.hpp"
#include "gpu/device_memory.cuh"
#include "gpu/problem.hpp"

#if __has_include(<nccl.h>)
#include <nccl.h>
#define BENCH_NCCL 1
#endif

namespace bench {

#ifdef BENCH_NCCL

namespace {

// The library as this process finds it, so that the driver runs where there is none.
struct Nccl {
  decltype(&ncclGetVersion) version = nullptr;
  decltype(&ncclGetUniqueId) unique_id = nullptr;
  decltype(&ncclCommInitRank) init = nullptr;
  decltype(&ncclGroupStart) group_start = nullptr;
  decltype(&ncclGroupEnd) group_end = nullptr;
  decltype(&ncclSend) send = nullptr;
  decltype(&ncclRecv) recv = nullptr;
  decltype(&ncclGetErrorString) words = nullptr;
  std::string why_not;

  static const Nccl& get() {
    static const Nccl library;
    return library;
  }

  void check(ncclResult_t code, const char* call) const {
    if (code != ncclSuccess) throw tasuki::Error(std::string(call) + " failed: " + words(code));
  }

 private:
  Nccl() {
    void* library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      why_not = std::string("NCCL cannot be opened: ") + dlerror();
      return;
    }
    const auto find = [&](auto& function, const char* name) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
      if (function == nullptr) why_not = std::string("this NCCL has no ") + name;
    };
    find(version, "ncclGetVersion");
    find(unique_id, "ncclGetUniqueId");
    find(init, "ncclCommInitRank");
    find(group_start, "ncclGroupStart");
    find(group_end, "ncclGroupEnd");
    find(send, "ncclSend");
    find(recv, "ncclRecv");
    find(words, "ncclGetErrorString");
  }
};

// One for all cases, made at the first and kept to the end of the process. Collective; throws on all ranks or on none.
ncclComm_t communicator(const tasuki::Context& context) {
  static ncclComm_t comm = nullptr;
  if (comm != nullptr) return comm;
  const Nccl& nccl = Nccl::get();
  std::string why = agree(context, nccl.why_not);
  if (!why.empty()) throw tasuki::Error(why);
  ncclUniqueId id{};
  ncclResult_t code = ncclSuccess;
  if (context.is_root()) code = nccl.unique_id(&id);
  MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, context.comm());
  if (code == ncclSuccess) code = nccl.init(&comm, context.size(), id, context.rank());
  why = agree(context, code == ncclSuccess ? "" : std::string("it cannot connect the ranks: ") + nccl.words(code));
  if (!why.empty()) throw tasuki::Error(why);
  return comm;
}

class NcclRunner : public Runner {
 public:
  NcclRunner(const GpuCase& problem, ncclComm_t comm)
      : problem_(problem), stream_(gpu_stream(problem.context)), comm_(comm), staging_(device_memory(staging_bytes())) {
    const int me = problem.context.rank();
    std::vector<StridedCopy> pack;
    std::vector<StridedCopy> unpack;
    std::byte* at = staging_.get();
    for (int peer = 0; peer < problem.context.size(); ++peer) {
      if (peer == me) continue;
      for (const bool sends : {true, false}) {
        const std::vector<GpuMove> moves = moves_with(peer, sends);
        if (moves.empty()) continue;
        const GpuRows first = rows(moves[0], sends);
        if (moves.size() == 1 && first.contiguous()) {
          messages_.push_back({peer, sends, place(moves[0], first), static_cast<std::size_t>(first.bytes())});
          continue;
        }
        std::byte* const begin = at;
        for (const GpuMove& move : moves) {
          const GpuRows inside = rows(move, sends);
          if (sends) {
            pack.push_back({place(move, inside), at, inside, packed(inside)});
          } else {
            unpack.push_back({at, place(move, inside), packed(inside), inside});
          }
          at += aligned(inside.bytes());
        }
        messages_.push_back({peer, sends, begin, static_cast<std::size_t>(at - begin)});
      }
    }
    for (const GpuMove& move : problem.moves) {  // what stays on this GPU needs no message
      if (move.source != me || move.target != me) continue;
      const GpuRows from = rows(move, true);
      const GpuRows to = rows(move, false);
      pack.push_back({place(move, from), place(move, to), from, to});
    }
    pack_ = std::make_unique<CopyList>(pack);
    unpack_ = std::make_unique<CopyList>(unpack);
  }

  void start() override {
    const Nccl& nccl = Nccl::get();
    pack_->enqueue(stream_);
    if (!messages_.empty()) {
      nccl.check(nccl.group_start(), "ncclGroupStart");
      for (const Message& m : messages_) {
        if (m.sends) {
          nccl.check(nccl.send(m.at, m.bytes, ncclUint8, m.peer, comm_, stream_), "ncclSend");
        } else {
          nccl.check(nccl.recv(m.at, m.bytes, ncclUint8, m.peer, comm_, stream_), "ncclRecv");
        }
      }
      nccl.check(nccl.group_end(), "ncclGroupEnd");
    }
    unpack_->enqueue(stream_);
  }
  void finish() override { finish_stream(problem_.context); }

 private:
  struct Message {
    int peer;
    bool sends;
    std::byte* at;
    std::size_t bytes;
  };

  // Boxes begin at multiples of 16 bytes in a message, for wide loads and stores.
  static std::int64_t aligned(std::int64_t bytes) { return (bytes + 15) / 16 * 16; }

  // What goes to that rank, or comes from it, in the same order on both.
  std::vector<GpuMove> moves_with(int peer, bool sends) const {
    const int me = problem_.context.rank();
    std::vector<GpuMove> moves;
    for (const GpuMove& move : problem_.moves) {
      if (move.source == (sends ? me : peer) && move.target == (sends ? peer : me)) moves.push_back(move);
    }
    return moves;
  }
  const tasuki::FieldBase& field(const GpuMove& move) const {
    return problem_.fields[static_cast<std::size_t>(move.field)];
  }
  GpuRows rows(const GpuMove& move, bool source) const { return rows_of(field(move), source ? move.from : move.to); }
  std::byte* place(const GpuMove& move, const GpuRows& rows) const { return field(move).raw(0) + rows.offset; }
  std::size_t staging_bytes() const {
    std::int64_t bytes = 0;
    for (const GpuMove& move : problem_.moves) {
      const GpuRows r = rows(move, true);
      if (move.source != move.target) bytes += aligned(r.bytes());
    }
    return static_cast<std::size_t>(bytes);
  }

  GpuCase problem_;
  tasuki::Stream stream_;
  ncclComm_t comm_;
  DeviceMemory staging_;
  std::vector<Message> messages_;
  std::unique_ptr<CopyList> pack_;
  std::unique_ptr<CopyList> unpack_;
};

bool stays_here(const GpuCase& problem) {
  for (const GpuMove& move : problem.moves) {
    if (move.source != move.target) return false;
  }
  return true;
}

RunnerPtr make(const GpuCase& problem) {
  if (everywhere(problem.context, stays_here(problem))) return nullptr;  // nothing for NCCL to do
  return unless_left_out(problem, "nccl",
                         [&] { return std::make_unique<NcclRunner>(problem, communicator(problem.context)); });
}

const RegisterPeer kPeer(gpu_peer("nccl", make));
const RegisterPeer kGraph(gpu_peer(std::string("nccl") + kReplayed, [](const GpuCase& problem) {
  return unless_left_out(problem, std::string("nccl") + kReplayed, [&] { return replayed(problem, make(problem)); });
}));

}  // namespace

std::string nccl_version() {
  const Nccl& nccl = Nccl::get();
  if (!nccl.why_not.empty()) return nccl.why_not;
  int number = 0;
  nccl.check(nccl.version(&number), "ncclGetVersion");
  return std::to_string(number / 10000) + "." + std::to_string(number / 100 % 100) + "." + std::to_string(number % 100);
}

#else

namespace {

const RegisterPeer kPeer(gpu_peer("nccl", [](const GpuCase& problem) {
  return unless_left_out(problem, "nccl", []() -> RunnerPtr { throw tasuki::Error(nccl_version()); });
}));

}  // namespace

std::string nccl_version() {
  return "built without nccl.h";
}

#endif

}  // namespace bench
