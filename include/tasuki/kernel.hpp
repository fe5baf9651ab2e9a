// The host's side of communication that kernels start: teams of ranks that reach each other's memory, messages with
// tags, and launching a kernel whose blocks are all there at once. Handles of operations are made by Operation::device.
// The kernel's side is tasuki/kernel.cuh.
//
// In a file that nvcc compiles a kernel runs on the GPU, in any other its blocks are threads of the host.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include "tasuki/context.hpp"
#include "tasuki/device.hpp"
#include "tasuki/kernel.cuh"
#include "tasuki/layout.hpp"
#include "tasuki/operation.hpp"

#if defined(__CUDACC__)
#include "tasuki/cuda.cuh"
#endif

namespace tasuki {

/// All must be the same on every rank.
struct KernelTeamOptions {
  std::int64_t window = 0;     ///< bytes of memory on each rank that the others put into
  int signals = 64;            ///< that a rank has for each other
  int words = 64;              ///< likewise, for `put_word`
  int barriers = 4;            ///< that may be used at the same time
  int packets = 0;             ///< that a rank has for each other, for `put_packet`
  std::int64_t packet = 4096;  ///< bytes of a packet, at most; they take twice as much memory
  int exchanges = 1;           ///< `all_to_all` and `allreduce` that may be used at the same time
  int exchange_words = 32;     ///< of a rank for each other, at most
};

/// The ranks of a context whose kernels put into each other's memory. Its memory is on the GPUs if the context uses
/// them (`use_gpu`, or a field on the device, before), else in memory that the processes of the host share.
///
/// Making one is collective. It throws on every rank if options differ or cannot be, if memory cannot be had, and if a
/// rank cannot store into the memory of another: ranks on several hosts or islands, GPUs without access to each other,
/// GPUs that only PCIe joins (where 16 bytes may arrive in two parts). A copy refers to the same team. The last one is
/// destroyed locally, when all kernels that use it have ended on this rank.
///
/// When a call in a kernel fails (a deadline, bad arguments), all that follow on this rank return false, and the next
/// call of this team's host side, of `Resident::wait` and of `synchronize` throws what the first was: rank, peer, slot
/// or tag, what was expected and found. A team that has failed stays so.
class KernelTeam {
 public:
  explicit KernelTeam(const Context& context, const KernelTeamOptions& options = {});

  /// What is passed to kernels. Waits of a kernel that has it end after nine tenths of the context's deadline as it is
  /// now, so that they end before the host's, which knows less. Local. Throws if a kernel has failed.
  /// `version` as Operation::device has it.
  device::Team device(std::uint32_t version = device::kKernelVersion) const;
  /// This rank's window, zero-filled in the beginning. Local.
  std::byte* window() const;
  Memory memory() const;  ///< where windows are
  void check() const;     ///< Throws if a kernel has failed on this rank. Local.

 private:
  friend class Messages;
  class State;
  explicit KernelTeam(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
};

/// All must be the same on every rank.
struct MessagesOptions {
  KernelTeamOptions team;
  /// Messages to one rank that never wait for their receiver, counted from the oldest that it has not received. Rounded
  /// up to a power of two. As many places are a reserve.
  int depth = 16;
  int receives = 64;               ///< that may be open for one sender; rounded up to a power of two
  std::int64_t eager = 1024;       ///< bytes of a message that is stored at once into its place at the receiver
  std::int64_t largest = 1 << 16;  ///< bytes of a message from outside the window, which is copied once more
  /// Several groups of a rank's kernel may make calls at the same time. Without, one group of a rank at a time does,
  /// whichever ranks the calls are for, and no call takes a lock or waits for an atomic operation.
  bool concurrent = true;
  /// `auto`: messages go through the host, by MPI, to ranks whose memory is not reached. `mpi`: to all others. If
  /// `auto`, TASUKI_PATH=mpi counts.
  std::string path = "auto";
  /// Messages through the host, sent and received, that may be under way on a rank; rounded up to a power of two.
  int by_host = 64;
  /// Bytes of pinned memory of each of these messages. A larger one travels in slices of a quarter of it.
  std::int64_t staging = 1 << 20;
  /// Receives may be from `device::kAnyRank`: from any other rank. All messages to others then go through the host, as
  /// with `path` mpi, for only there one matches them all.
  bool any_source = false;
};

/// Messages with tags between kernels: see `device::isend`. With a team of its own; all that is said there holds here.
/// A rank's memory holds for each rank 2 * depth places of 2 * eager bytes, and as many of `largest` bytes.
///
/// Other than in a team, the memory of ranks need not be reached: messages to other islands and hosts, and to GPUs out
/// of reach, go through the host, where the process's progress thread gives them to MPI. It needs MPI_THREAD_MULTIPLE,
/// and takes two of MPI's communicators until MPI ends. While a kernel runs on a GPU, that thread does not sleep.
class Messages {
 public:
  explicit Messages(const Context& context, const MessagesOptions& options = {});

  device::Messages device(std::uint32_t version = device::kKernelVersion) const;  ///< As `KernelTeam::device`.
  std::byte* window() const { return team_.window(); }
  Memory memory() const { return team_.memory(); }
  const KernelTeam& team() const { return team_; }
  void check() const { team_.check(); }

 private:
  void lay_out();

  device::Messages kept_{};
  KernelTeam team_;
  std::shared_ptr<void> by_host_;
};

/// A layout as kernels send and receive it, for any Messages of the context. Making one is local; it must outlive the
/// kernels that use it. A copy refers to the same.
class MessageLayout {
 public:
  /// On the GPU if the context uses them. Throws if memory cannot be had.
  MessageLayout(const Context& context, const Layout& layout);
  /// What is passed to kernels. A layout that begins at its address and has no gaps is as good as its bytes.
  device::Shape device() const { return shape_; }

 private:
  device::Shape shape_;
  std::shared_ptr<const device::ShapeBlock> blocks_;
};

/// Which blocks of a launch wait for each other, step by step: see `device::Steps`. Local. It belongs to one launch at
/// a time. A copy refers to the same; the last one is destroyed when the kernels that use it have ended.
class BlockNeighbours {
 public:
  /// `of[b]`: the neighbours of block b, of which there may be none. Throws if there are no blocks, if one names
  /// itself, a block that is not there or one twice, if one names another that does not name it, and if memory cannot
  /// be had. On the GPU if the context uses them.
  BlockNeighbours(const Context& context, const std::vector<std::vector<int>>& of);
  /// What is passed to kernels, launched with as many blocks by `launch_resident`.
  device::Neighbours device() const { return neighbours_; }

 private:
  device::Neighbours neighbours_{};
  std::shared_ptr<std::byte> memory_;
  std::shared_ptr<void> known_;  // to launches; goes first
};

/// How a kernel is launched.
struct ResidentOptions {
  int blocks = 1;
  int threads = 256;              ///< of a block on a GPU
  std::int64_t shared_bytes = 0;  ///< of dynamic shared memory a block, on a GPU
  Stream stream = nullptr;        ///< on a GPU
  int cpu_threads = 1;            ///< of a block on a processor, at most 32
};

/// A kernel that is running.
class [[nodiscard]] Resident {
 public:
  /// Returns when the kernel has ended, however long that takes: the context's deadline is for each wait in the kernel,
  /// not for the kernel. Throws if a call in it has failed, if a rank has died or given up (waits of the kernel are
  /// ended then), and what the kernel has thrown if it ran on threads. Then too it returns when the kernel has ended.
  /// `synchronize` of the stream, in its place, has the deadline. Local.
  void wait();
  /// Waits too, and throws nothing.
  ~Resident();
  Resident(Resident&&) noexcept;
  Resident& operator=(Resident&&) = delete;

  class State;
  explicit Resident(std::unique_ptr<State> state);

 private:
  std::unique_ptr<State> state_;
};

namespace detail {
/// What a GPU has, and what a kernel takes of it: by these blocks fit, or do not.
struct KernelFacts {
  int gpu = 0;
  std::string gpu_name;
  int multiprocessors = 0;
  int blocks = 0;  ///< of a multiprocessor, at most, as what follows
  int threads = 0;
  int registers = 0;
  std::int64_t shared = 0;           ///< bytes
  std::int64_t shared_of_block = 0;  ///< bytes that a block may have
  int block_threads = 0;             ///< of a block of this kernel, at most
  int thread_registers = 0;
  std::int64_t block_shared = 0;  ///< bytes that a block takes besides what the launch gives it
};
/// Throws unless blocks of this size can be; and unless all have room at once, of which `each` fit on a multiprocessor,
/// saying how many would and what they run out of.
void check_block(const Context& context, const ResidentOptions& options, const KernelFacts& facts);
void check_room(const Context& context, const ResidentOptions& options, const KernelFacts& facts, int each);

/// Throws if the context has no GPU, if CUDA_LAUNCH_BLOCKING=1 would make the launch wait for the kernel's end, or if
/// the stream is being captured: what waits for other ranks is not replayed.
void check_gpu_launch(const Context& context, const ResidentOptions& options);
Resident watch_gpu_launch(const Context& context, Stream stream);

/// The numbers of the handles, teams, messages and neighbours in the bytes of an argument, those of freed ones too.
std::vector<std::uint32_t> numbers_in(const void* argument, std::size_t bytes);
/// Throws unless what has that number is valid in this context, and fits into a launch of so many blocks and threads.
/// `call` is for the message.
void check_number(const Context& context, const char* call, std::uint32_t number, int blocks, int threads);
/// Throws unless what is handed to a kernel is of the version that the kernel is compiled with.
void check_version(const Context& context, std::uint32_t found, std::uint32_t kernels);
template <class Argument>
void check_version_of(const Context&, const Argument&) {}
inline void check_version_of(const Context& context, const device::Team& team) {
  check_version(context, team.heading.version, device::kKernelVersion);
}
inline void check_version_of(const Context& context, const device::Messages& messages) {
  check_version(context, messages.team.heading.version, device::kKernelVersion);
}
template <bool kReduces>
void check_version_of(const Context& context, const device::BasicHandle<kReduces>& handle) {
  check_version(context, handle.heading.version, device::kKernelVersion);
}
inline void check_version_of(const Context& context, const device::Neighbours& neighbours) {
  check_version(context, neighbours.version, device::kKernelVersion);
}
/// Checks an argument, and adds its numbers to those of the launch.
template <class Argument>
void check_argument(const Context& context, int blocks, int threads, const Argument& argument,
                    std::vector<std::uint32_t>& numbers) {
  check_version_of(context, argument);
  if constexpr (std::is_class_v<Argument> && sizeof(Argument) >= sizeof(device::Heading)) {
    for (const std::uint32_t number : numbers_in(&argument, sizeof argument)) {
      check_number(context, "launch_resident", number, blocks, threads);
      numbers.push_back(number);
    }
  }
}
}  // namespace detail

#if defined(__CUDACC__)

namespace detail {
/// Throws unless all blocks have room at once; says how many would, and what they run out of.
inline void check_fits(const Context& context, const void* kernel, const ResidentOptions& options) {
  int gpu = 0;
  cudaDeviceProp has{};
  cudaFuncAttributes takes{};
  TASUKI_CUDA(cudaGetDevice, &gpu);
  TASUKI_CUDA(cudaGetDeviceProperties, &has, gpu);
  TASUKI_CUDA(cudaFuncGetAttributes, &takes, kernel);  // loads the kernel, too
  KernelFacts facts;
  facts.gpu = gpu;
  facts.gpu_name = has.name;
  facts.multiprocessors = has.multiProcessorCount;
  facts.blocks = has.maxBlocksPerMultiProcessor;
  facts.threads = has.maxThreadsPerMultiProcessor;
  facts.registers = has.regsPerMultiprocessor;
  facts.shared = static_cast<std::int64_t>(has.sharedMemPerMultiprocessor);
  facts.shared_of_block = static_cast<std::int64_t>(has.sharedMemPerBlockOptin);
  facts.block_threads = takes.maxThreadsPerBlock;
  facts.thread_registers = takes.numRegs;
  facts.block_shared = static_cast<std::int64_t>(takes.sharedSizeBytes + has.reservedSharedMemPerBlock);
  check_block(context, options, facts);
  if (options.shared_bytes > takes.maxDynamicSharedSizeBytes)
    TASUKI_CUDA(cudaFuncSetAttribute, kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                static_cast<int>(options.shared_bytes));
  int each = 0;
  TASUKI_CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor, &each, kernel, options.threads,
              static_cast<std::size_t>(options.shared_bytes));
  check_room(context, options, facts, each);
}
}  // namespace detail

inline namespace on_gpu {

/// Launches a kernel whose blocks may wait for each other and for other ranks: cooperatively, in the stream of the
/// options, on this rank's GPU. Throws if not all blocks have room on it at once, saying how many would and which limit
/// was hit; for an argument of another version than the kernel; if the context uses no GPU, if the stream is being
/// captured, and where CUDA_LAUNCH_BLOCKING=1 would make the launch wait for the kernel's end; for a handle of an
/// operation that was freed or is active, or of a group that has other threads or more blocks; for neighbours of
/// another number of blocks; for a handle, team, messages or neighbours of another context, or that were freed. All
/// these are found among the arguments, and by value in a struct that is one, but not behind a pointer.
///
/// Local; the kernels of all ranks of a team must run at the same time. A kernel may run for any time: see
/// Resident::wait.
template <class... Parameters>
Resident launch_resident(const Context& context, const ResidentOptions& options, void (*kernel)(Parameters...),
                         const std::type_identity_t<Parameters>&... arguments) {
  detail::check_gpu_launch(context, options);
  std::vector<std::uint32_t> numbers;
  (detail::check_argument(context, options.blocks, options.threads, arguments, numbers), ...);
  detail::check_fits(context, reinterpret_cast<const void*>(kernel), options);
  cudaLaunchAttribute together{};
  together.id = cudaLaunchAttributeCooperative;
  together.val.cooperative = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = static_cast<unsigned>(options.blocks);
  config.blockDim = static_cast<unsigned>(options.threads);
  config.dynamicSmemBytes = static_cast<std::size_t>(options.shared_bytes);
  config.stream = options.stream;
  config.attrs = &together;
  config.numAttrs = 1;
  check_cuda(cudaLaunchKernelEx(&config, kernel, arguments...), "launch_resident");
  return detail::watch_gpu_launch(context, options.stream);
}

}  // namespace on_gpu

#else

namespace detail {
/// Runs `kernel` in blocks * cpu_threads threads, each with who it is. What has these numbers stays until it has ended.
Resident run_on_threads(const Context& context, const ResidentOptions& options,
                        const std::vector<std::uint32_t>& numbers,
                        std::function<void(const device::detail::CpuThread&)> kernel);
}  // namespace detail

inline namespace on_cpu {

/// Runs a kernel on threads of the host, `cpu_threads` a block. Throws if there are too many, and if the context uses
/// GPUs: then the kernel must be compiled by nvcc. Arguments are checked as on a GPU; it also throws if a kernel that
/// has the same handle or neighbours still runs, after which the other would run in a stream. What the kernel throws,
/// `wait` throws. It also throws if not all threads of a group make a call, once the others wait or have left the
/// kernel. Local; the kernels of all ranks of a team must run at the same time. The kernel may run for any time.
template <class... Parameters>
Resident launch_resident(const Context& context, const ResidentOptions& options, void (*kernel)(Parameters...),
                         const std::type_identity_t<Parameters>&... arguments) {
  std::vector<std::uint32_t> numbers;
  (detail::check_argument(context, options.blocks, options.cpu_threads, arguments, numbers), ...);
  return detail::run_on_threads(context, options, numbers,
                                [kernel, given = std::tuple<Parameters...>(arguments...)](const auto& who) {
                                  device::detail::cpu_thread = who;
                                  std::apply(kernel, given);
                                });
}

}  // namespace on_cpu

#endif

}  // namespace tasuki
