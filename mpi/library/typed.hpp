// One typed buffer of a call: what is known of it, which way its bytes go, and what MPI is given instead of it.
#pragma once

#include <mpi.h>

#include <climits>
#include <cstdint>

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
      : buffer_(const_cast<void*>(buffer)), count_(count), type_(type) {
    const Type& known = type_of(type);
    if (known.plain) [[likely]] {
      if (!known.unknown.empty()) [[unlikely]]
        note_unknown(call, caller, known);
      return;
    }
    if (passes || count <= 0 || count > INT_MAX) return;
    what_ = &counted(known, count);
    route_ = route_of(**what_, buffer, type);
    if (route_ == Route::spelt) {
      count_ = (*what_)->spelt.count;
      type_ = (*what_)->spelt.type;
    } else if (route_ == Route::packed) {
      packed_ = Scratch((*what_)->bytes());
      if (packed_) {
        count_ = (*what_)->bytes();
        type_ = MPI_PACKED;
      } else {
        route_ = Route::original;
      }
    }
    note(call, caller, **what_, route_);
  }

  bool packed() const { return route_ == Route::packed; }
  /// Whether MPI is given something else than the program says.
  bool changed() const { return route_ == Route::packed || route_ == Route::spelt; }

  // What MPI is given.
  void* buffer() const { return packed() ? packed_.data() : buffer_; }
  int count() const { return static_cast<int>(count_); }
  MPI_Datatype type() const { return type_; }

  void pack() const { what().packer.pack(static_cast<const std::byte*>(buffer_), packed_.data()); }
  void unpack(const MPI_Status& status) const { unpack_received(what(), packed_, buffer_, status); }
  void unpack_all() const { what().packer.unpack(packed_.data(), static_cast<std::byte*>(buffer_)); }
  /// What is kept until the request is complete.
  Message message(bool receives, bool persistent) {
    return {*what_, std::move(packed_), buffer_, receives, persistent, !persistent, false};
  }

 private:
  const Counted& what() const { return **what_; }

  void* buffer_;
  std::int64_t count_;
  MPI_Datatype type_;
  Route route_ = Route::original;
  const std::shared_ptr<Counted>* what_ = nullptr;
  Scratch packed_;
};

}  // namespace tasuki::mpi
