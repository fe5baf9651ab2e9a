// One typed buffer of a call: what is known of it, which way its bytes go, and what MPI is given instead of it.
#pragma once

#include <mpi.h>

#include <climits>
#include <cstdint>
#include <memory>
#include <utility>

#include "known.hpp"
#include "report.hpp"
#include "requests.hpp"
#include "route.hpp"
#include "scratch.hpp"
#include "session.hpp"

namespace tasuki::mpi {

class Typed {
 public:
  /// `passes`: MPI moves nothing or finds a fault, so the call is its own.
  Typed(const char* call, const void* caller, const void* buffer, std::int64_t count, MPI_Datatype type, bool passes)
      : call_(call), caller_(caller), buffer_(const_cast<void*>(buffer)), count_(count), own_type_(type), type_(type) {
    const Type& known = type_of(type);
    if (known.plain) [[likely]] {
      if (!known.unknown.empty()) [[unlikely]]
        note_unknown(call, caller, known);
      return;
    }
    if (passes || count <= 0 || count > INT_MAX) return;
    what_ = counted(known, count);
    if (!in_host_memory(*what_, buffer)) what_ = nullptr;  // MPI knows what to do, or what is wrong with it
  }

  bool known() const { return what_ != nullptr; }
  /// Whether it is known and lies in pieces.
  bool in_pieces() const { return what_ != nullptr && !what().contiguous; }
  const Counted& what() const { return *what_; }
  /// Whether it goes through the ring where that is possible.
  bool ring_pays() const { return what_ != nullptr && mpi::ring_pays(*what_, buffer_, type_); }

  /// Chooses how MPI is given it: to send, or to receive what may be longer.
  void choose() { choose(false); }
  void choose_to_receive() { choose(kLandingGap > 0); }
  bool packed() const { return route_ == Route::packed; }
  /// Whether MPI is given something else than the program says.
  bool changed() const { return route_ == Route::packed || route_ == Route::spelt; }

  // What MPI is given.
  void* buffer() const { return packed() ? packed_.data() : buffer_; }
  int count() const { return static_cast<int>(count_); }
  MPI_Datatype type() const { return type_; }
  /// The program's.
  void* own_buffer() const { return buffer_; }

  // A message that goes into a slot of its receiver's. Before anything is chosen.
  std::int64_t message_bytes() const {
    if (what_ != nullptr) return what().bytes();
    MPI_Count size = 0;
    return PMPI_Type_size_x(type_, &size) == MPI_SUCCESS ? static_cast<std::int64_t>(size) * count_ : 0;
  }
  void fill(const Slot& slot) const {
    if (what_ != nullptr)
      mpi::fill(slot, what(), buffer_);
    else
      mpi::fill(slot, buffer_, count_, type_);
    note(Route::ring);
  }

  void note(Route route) const {
    if (what_ != nullptr) mpi::note(call_, caller_, what(), route);
  }
  void note() const { note(route_); }
  void pack() const { what().packer.pack(static_cast<const std::byte*>(buffer_), packed_.data()); }
  void unpack_all() const { what().packer.unpack(packed_.data(), static_cast<std::byte*>(buffer_)); }
  /// What is kept until the request is complete. Nothing of it is known here afterwards.
  Message message(bool receives, bool persistent) {
    Message kept;
    kept.packed = std::move(packed_);
    kept.buffer = buffer_;
    kept.receives = receives;
    kept.persistent = persistent;
    kept.ring_pays = persistent && ring_pays();
    kept.active = !persistent;
    kept.call = call_;
    kept.caller = caller_;
    kept.route = route_;
    kept.what = std::move(what_);
    return kept;
  }

 private:
  void choose(bool lands) {
    if (what_ == nullptr) return;
    const std::int64_t bytes = what().bytes();
    route_ = route_of(*what_, buffer_, type_);
    if (route_ == Route::spelt) {
      count_ = what().spelt.count;
      type_ = what().spelt.type;
    } else if (route_ == Route::packed && lands && bytes <= kLandingTail) {
      leave_to_mpi();
    } else if (route_ == Route::packed && lands) {
      pack_into(Scratch(bytes + kLandingGap), 1, what().landing());
    } else if (route_ == Route::packed) {
      pack_into(Scratch(bytes), bytes, MPI_PACKED);
    }
  }
  void pack_into(Scratch memory, std::int64_t count, MPI_Datatype type) {
    if (!memory) return leave_to_mpi();
    packed_ = std::move(memory);
    count_ = count;
    type_ = type;
  }
  void leave_to_mpi() {
    route_ = Route::original;
    count_ = what().count;
    type_ = own_type_;
    packed_ = Scratch();
  }

  const char* call_;
  const void* caller_;
  void* buffer_;
  std::int64_t count_;
  MPI_Datatype own_type_;
  MPI_Datatype type_;
  Route route_ = Route::original;
  // Its own: another thread may free the type during a call that blocks.
  std::shared_ptr<Counted> what_;
  Scratch packed_;
};

}  // namespace tasuki::mpi
