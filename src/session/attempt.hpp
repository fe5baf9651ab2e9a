// Attempt: what ranks make together, where each has a part of its own that may fail on it alone.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "layout/encoding.hpp"
#include "session/runtime.hpp"
#include "support/fail_point.hpp"

namespace tasuki {

/// A rank whose part has failed goes on to take part in every exchange, and says there that it has failed. So ranks
/// exchange equally often whatever happens, no rank waits for one that has left, and all throw together: in the next
/// call that all ranks take part in, at the latest in `settle`.
class Attempt {
 public:
  /// All ranks of the context take part.
  explicit Attempt(Runtime& runtime) : runtime_(runtime) {}
  /// Only this rank and `peers` (ascending) take part.
  Attempt(Runtime& runtime, std::vector<int> peers) : runtime_(runtime), everyone_(false), peers_(std::move(peers)) {}

  /// Does a part of this rank, which makes no collective call. What it throws is kept for `settle`. Nothing is done
  /// once this rank, or a peer in `exchange`, has failed.
  template <class Part>
  void locally(const char* step, Part&& part) {
    if (failing()) return;
    try {
      FailPoint::pass(step);
      part();
      FailPoint::pass(step);
    } catch (const Interruption&) {
      throw;
    } catch (const std::exception&) {
      if (runtime_.failed()) throw;  // a wait has failed: nobody is there to agree with
      failure_ = std::current_exception();
    }
  }

  bool failed() const { return failure_ != nullptr; }        ///< this rank's part
  bool failing() const { return failed() || peer_failed_; }  ///< as far as this rank knows

  /// Tells each of `peers`, which name this rank too, what `tell(number of the peer, to)` writes. Returns what they
  /// tell, in their order; texts are empty if this rank or a peer has failed. Throws `Malformed` if a peer is in
  /// another call.
  using Tell = std::function<void(std::size_t peer, Encoder& to)>;
  std::vector<std::string> exchange(std::span<const int> peers, const Tell& tell);
  /// Tells all ranks what `tell` writes. Returns what they tell, by rank. Throws on all ranks if one has failed.
  /// Collective over all ranks of the context.
  std::vector<std::string> gather(const std::string& operation, const std::function<void(Encoder& to)>& tell,
                                  const std::string& doing);
  /// Bitwise AND of each word over all ranks. Throws on all ranks if one has failed. Collective over all ranks.
  std::vector<std::uint64_t> combine(const std::string& operation, std::vector<std::uint64_t> words,
                                     const std::string& doing);
  /// What has failed on this rank becomes its complaint in a comparison of the same ranks. Where ranks compare nothing
  /// (TASUKI_AGREE=0) the others cannot be told in a call: then it throws, and the context has failed.
  void complain_to(Agreement& agreement, const std::string& operation) const;
  /// Ends the attempt: throws on every rank that takes part if one has failed, with that rank's text. Collective over
  /// the ranks that take part.
  void settle(const std::string& operation);

 private:
  Runtime& runtime_;
  bool everyone_ = true;
  std::vector<int> peers_;
  std::exception_ptr failure_;
  bool peer_failed_ = false;
};

}  // namespace tasuki
