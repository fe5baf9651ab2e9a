// Communicators that no context uses any more, kept for later contexts of the same ranks.
//
// They are never destroyed, because that frees memory. CUDA frees memory only when all kernels have ended, and until
// then lets no thread of the process launch anything. So an epoch of several launches could hang: its first kernel
// waits for a message whose copy the other rank has yet to launch, and cannot.
#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tasuki/error.hpp"

namespace tasuki {

/// One rank's part of a communicator. Two parts belong together if their ids are equal. Ids of one library are equally
/// long.
template <class Handle>
struct KeptPart {
  std::string id;
  int size = 0;
  int place = 0;  ///< of this rank in the communicator
  int gpu = 0;
  Handle handle{};
};

/// Of one process. Any thread may call it.
template <class Handle>
class Kept {
 public:
  /// What a rank can use again at one place of a communicator. Nobody else is offered it meanwhile; its end keeps what
  /// nobody has taken.
  class Offer {
   public:
    Offer(Kept& kept, std::vector<KeptPart<Handle>> parts) : kept_(kept), parts_(std::move(parts)) {}
    ~Offer() {
      for (auto& part : parts_) kept_.keep(std::move(part));
    }
    Offer(const Offer&) = delete;
    Offer& operator=(const Offer&) = delete;

    /// One after another, the latest last.
    std::string ids() const {
      std::string ids;
      for (const auto& part : parts_) ids += part.id;
      return ids;
    }
    /// The part with this id. Throws `Error` if it is not among those that are offered.
    KeptPart<Handle> take(std::string_view id) {
      const auto found = std::find_if(parts_.begin(), parts_.end(), [&](const auto& part) { return part.id == id; });
      if (found == parts_.end())
        throw Error(ErrorKind::system, "a communicator is taken that is not there (a defect in Tasuki)");
      KeptPart<Handle> taken = std::move(*found);
      parts_.erase(found);
      return taken;
    }

   private:
    Kept& kept_;
    std::vector<KeptPart<Handle>> parts_;
  };

  void keep(KeptPart<Handle> part) {
    const std::lock_guard lock(mutex_);
    parts_.push_back(std::move(part));
  }
  Offer offer(int size, int place, int gpu) {
    const std::lock_guard lock(mutex_);
    const auto others = std::stable_partition(parts_.begin(), parts_.end(), [&](const KeptPart<Handle>& part) {
      return part.size != size || part.place != place || part.gpu != gpu;
    });
    std::vector<KeptPart<Handle>> fitting(std::make_move_iterator(others), std::make_move_iterator(parts_.end()));
    parts_.erase(others, parts_.end());
    return {*this, std::move(fitting)};
  }

 private:
  std::mutex mutex_;
  std::vector<KeptPart<Handle>> parts_;
};

/// The latest id, by the first rank's order, that every rank offers; empty if there is none. The same on all ranks.
inline std::string common_id(const std::vector<std::string>& offers, std::size_t length) {
  const auto has = [length](const std::string& offer, std::string_view id) {
    for (std::size_t at = 0; at + length <= offer.size(); at += length)
      if (std::string_view(offer).substr(at, length) == id) return true;
    return false;
  };
  for (std::size_t end = offers[0].size() / length * length; end >= length; end -= length) {
    const std::string_view id = std::string_view(offers[0]).substr(end - length, length);
    if (std::all_of(offers.begin(), offers.end(), [&](const std::string& offer) { return has(offer, id); }))
      return std::string(id);
  }
  return {};
}

}  // namespace tasuki
