// KernelTeam::State: a rank's memory of a team, that of the others as this rank sees it, and what kernels have said.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kernels/registry.hpp"
#include "session/runtime.hpp"
#include "tasuki/kernel.hpp"

namespace tasuki {

/// Places in a rank's memory, one after the other.
class Places {
 public:
  explicit Places(std::uint64_t begin = 0) : next_(begin) {}
  /// Where `bytes` bytes begin, aligned to a line of the GPU's cache.
  std::uint64_t take(std::uint64_t bytes) {
    const std::uint64_t at = next_;
    next_ += (bytes + kLine - 1) / kLine * kLine;
    return at;
  }
  std::uint64_t end() const { return next_; }

 private:
  static constexpr std::uint64_t kLine = 128;
  std::uint64_t next_;
};

/// Which of the others' memory a team must reach.
enum class Others : std::uint8_t {
  reached,      ///< all
  some,         ///< none, if the host can carry messages to those that are unreachable
  unreachable,  ///< likewise, and all count as unreachable, even if they could be reached
};

class KernelTeam::State {
 public:
  /// Collective. `agreement` has the caller's own arguments and complaints. `extra` bytes come before the window, from
  /// `extra_at()` on; it is not asked if there are complaints.
  State(const Context& context, const std::string& name, const KernelTeamOptions& options, Agreement agreement,
        const std::function<std::uint64_t()>& extra, Others others = Others::reached);
  ~State();
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  device::Team device(std::uint32_t version) const;
  std::uint64_t extra_at() const { return extra_at_; }
  std::byte* window() const { return own_.get() + team_.window_at; }
  Memory memory() const { return on_gpu_ ? Memory::device : Memory::host; }
  void check() const;
  int unreachable_count() const { return team_.unreachable; }
  bool on_gpu() const { return on_gpu_; }
  Runtime& runtime() const { return runtime_; }
  /// Is asked first when a kernel has failed: text that says why, or empty.
  void ask_why(std::function<std::string()> why) { why_ = std::move(why); }

 private:
  std::vector<std::string> unreachable() const;
  std::string complaint_of(const std::vector<std::string>& why_not, Others others) const;
  void set_unreachable(const std::vector<std::string>& why_not, Others others);
  void allocate(std::int64_t bytes);
  void map_peers();

  Context context_;  // first, so that it goes last
  Runtime& runtime_;
  const std::string name_;
  const bool on_gpu_;
  device::Team team_{};
  std::uint64_t extra_at_ = 0;
  std::vector<bool> is_unreachable_;  // by rank
  std::function<std::string()> why_;
  std::shared_ptr<std::byte> own_;
  std::vector<std::shared_ptr<std::byte>> peers_;
  std::shared_ptr<device::Failure> failure_;
  KernelUsers users_;
  std::shared_ptr<void> known_;  // to launches
  std::shared_ptr<void> watched_;
};

}  // namespace tasuki
