// Peer `peer copies`: neighbours' fields opened in this process, strided copies into them by CUDA on a stream for each
// neighbour, and events between processes that say when a field may be written and when it has been.
#include <mpi.h>

#include <atomic>

#include "case.hpp"
#include "gpu/ipc.hpp"
#include "gpu/problem.hpp"
#include "tasuki/cuda.cuh"

namespace bench {
namespace {

// Counters of the ranks of a host in memory that they share: rank r's counter for rank s says which epoch's event for
// s it has recorded.
class Counters {
 public:
  explicit Counters(const tasuki::Context& context)
      : context_(context), places_(static_cast<std::size_t>(context.size())) {
    std::byte* mine = nullptr;
    const auto bytes = static_cast<MPI_Aint>(places_.size() * kLine);
    MPI_Comm_split_type(context.comm(), MPI_COMM_TYPE_SHARED, context.rank(), MPI_INFO_NULL, &host_);
    MPI_Win_allocate_shared(bytes, 1, MPI_INFO_NULL, host_, &mine, &window_);
    for (std::size_t s = 0; s < places_.size(); ++s) {
      std::atomic_ref<std::uint64_t>(*reinterpret_cast<std::uint64_t*>(mine + s * kLine)).store(0);
    }
    for (int rank = 0; rank < context.size(); ++rank) {  // of one host, in the same order as in the context
      MPI_Aint size = 0;
      int unit = 0;
      MPI_Win_shared_query(window_, rank, &size, &unit, &places_[static_cast<std::size_t>(rank)]);
    }
    MPI_Barrier(host_);
  }
  ~Counters() {
    MPI_Win_free(&window_);
    MPI_Comm_free(&host_);
  }
  Counters(const Counters&) = delete;
  Counters& operator=(const Counters&) = delete;

  void set(int waiter, std::uint64_t epoch) const {
    word(context_.rank(), waiter).store(epoch, std::memory_order_release);
  }

  void await(int rank, std::uint64_t epoch) const {
    const auto counter = word(rank, context_.rank());
    const double begin = MPI_Wtime();
    for (unsigned polls = 1; counter.load(std::memory_order_acquire) < epoch; ++polls) {
      if (polls % 4096 == 0 && MPI_Wtime() - begin > context_.deadline()) {
        end_job(context_,
                "peer copies: rank " + std::to_string(rank) + " has not come to exchange " + std::to_string(epoch));
      }
    }
  }

 private:
  static constexpr std::size_t kLine = 64;
  std::atomic_ref<std::uint64_t> word(int rank, int waiter) const {
    return std::atomic_ref<std::uint64_t>(*reinterpret_cast<std::uint64_t*>(places_[static_cast<std::size_t>(rank)] +
                                                                            static_cast<std::size_t>(waiter) * kLine));
  }

  tasuki::Context context_;
  MPI_Comm host_ = MPI_COMM_NULL;
  MPI_Win window_ = MPI_WIN_NULL;
  std::vector<std::byte*> places_;
};

// One call of CUDA: contiguous, rows, or planes of rows. Both sides have the same rows and strides.
struct Copy {
  const std::byte* from;
  std::byte* to;
  GpuRows rows;

  void enqueue(cudaStream_t stream) const {
    const auto row = static_cast<std::size_t>(rows.row);
    const auto pitch = static_cast<std::size_t>(rows.stride[1]);
    const auto count = static_cast<std::size_t>(rows.rows[1]);
    if (rows.contiguous()) {
      TASUKI_CUDA(cudaMemcpyAsync, to, from, row, cudaMemcpyDefault, stream);
    } else if (rows.rows[0] == 1) {
      TASUKI_CUDA(cudaMemcpy2DAsync, to, pitch, from, pitch, row, count, cudaMemcpyDefault, stream);
    } else {
      const auto rows_apart = static_cast<std::size_t>(rows.stride[0] / rows.stride[1]);  // from plane to plane
      cudaMemcpy3DParms whole{};
      whole.srcPtr = make_cudaPitchedPtr(const_cast<std::byte*>(from), pitch, row, rows_apart);
      whole.dstPtr = make_cudaPitchedPtr(to, pitch, row, rows_apart);
      whole.extent = make_cudaExtent(row, count, static_cast<std::size_t>(rows.rows[0]));
      whole.kind = cudaMemcpyDefault;
      TASUKI_CUDA(cudaMemcpy3DAsync, &whole, stream);
    }
  }
};

struct Neighbour {
  int rank = 0;
  bool writes_here = false;             // it copies to this rank too
  std::vector<Copy> copies;             // from this rank to it
  std::shared_ptr<CUstream_st> stream;  // that they are in
};

// A wait for an event of another process is for its last record so far, so the hosts tell each other which they have
// made. That also keeps an event from being recorded anew too early: who says "arrived" of the next epoch has seen its
// "ready", which comes from a host that has enqueued its wait for the last "arrived"; and the other way round.
class PeerCopies : public Runner {
 public:
  explicit PeerCopies(const GpuCase& problem)
      : problem_(problem),
        stream_(gpu_stream(problem.context)),
        ready_(problem.context),
        arrived_(problem.context),
        ready_told_(problem.context),
        arrived_told_(problem.context) {
    for (const tasuki::FieldBase& field : problem.fields)
      fields_.emplace_back(problem.context, field.raw(problem.copy));
    TASUKI_CUDA(cudaEventCreateWithFlags, &begun_, cudaEventDisableTiming);
    for (int rank = 0; rank < problem.context.size(); ++rank) add_neighbour(rank);
  }
  ~PeerCopies() override {
    cudaEventDestroy(begun_);
    ready_.close();
    arrived_.close();  // then giving up the counters brings the ranks together, before any destroys its own events
  }
  PeerCopies(const PeerCopies&) = delete;
  PeerCopies& operator=(const PeerCopies&) = delete;

  void start() override {
    ++epoch_;
    TASUKI_CUDA(cudaEventRecord, begun_, stream_);
    for (const Neighbour& n : neighbours_) {
      if (!n.writes_here) continue;
      TASUKI_CUDA(cudaEventRecord, ready_.mine(n.rank), stream_);
      ready_told_.set(n.rank, epoch_);
    }
    for (const Neighbour& n : neighbours_) {
      if (n.copies.empty()) continue;
      TASUKI_CUDA(cudaStreamWaitEvent, n.stream.get(), begun_, 0);
      if (!here(n)) {
        ready_told_.await(n.rank, epoch_);
        TASUKI_CUDA(cudaStreamWaitEvent, n.stream.get(), ready_.theirs(n.rank), 0);
      }
      for (const Copy& copy : n.copies) copy.enqueue(n.stream.get());
      TASUKI_CUDA(cudaEventRecord, arrived_.mine(n.rank), n.stream.get());
      if (!here(n)) arrived_told_.set(n.rank, epoch_);
    }
    for (const Neighbour& n : neighbours_) {
      if (!n.copies.empty()) TASUKI_CUDA(cudaStreamWaitEvent, stream_, arrived_.mine(n.rank), 0);
      if (!n.writes_here) continue;
      arrived_told_.await(n.rank, epoch_);
      TASUKI_CUDA(cudaStreamWaitEvent, stream_, arrived_.theirs(n.rank), 0);
    }
  }
  void finish() override { finish_stream(problem_.context); }

 private:
  bool here(const Neighbour& n) const { return n.rank == problem_.context.rank(); }

  void add_neighbour(int rank) {
    const int me = problem_.context.rank();
    Neighbour n;
    n.rank = rank;
    for (const GpuMove& move : problem_.moves) {
      if (move.source == rank && rank != me) n.writes_here = true;
      if (move.source != me || move.target != rank) continue;
      const auto f = static_cast<std::size_t>(move.field);
      const GpuRows from = rows_of(problem_.fields[f], move.from);
      const GpuRows to = rows_of(problem_.fields[f], move.to);
      n.copies.push_back({fields_[f].of(me) + from.offset, fields_[f].of(rank) + to.offset, from});
    }
    if (!n.writes_here && n.copies.empty()) return;
    cudaStream_t stream = nullptr;
    TASUKI_CUDA(cudaStreamCreateWithFlags, &stream, cudaStreamNonBlocking);
    n.stream = {stream, [](cudaStream_t s) { cudaStreamDestroy(s); }};
    neighbours_.push_back(n);
  }

  GpuCase problem_;
  cudaStream_t stream_;
  PeerEvents ready_;
  PeerEvents arrived_;
  Counters ready_told_;
  Counters arrived_told_;
  std::vector<PeerMemory> fields_;
  std::vector<Neighbour> neighbours_;
  cudaEvent_t begun_ = nullptr;
  std::uint64_t epoch_ = 0;
};

const RegisterPeer kPeer(gpu_peer("peer copies", [](const GpuCase& problem) {
  return unless_left_out(problem, "peer copies", [&] { return std::make_unique<PeerCopies>(problem); });
}));

}  // namespace
}  // namespace bench
