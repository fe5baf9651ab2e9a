// What each rank is doing, for the error of one that waits for others in vain: tasks that disagree wait in different
// calls, and the error names both.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <string>

#include "shape.hpp"

namespace tasuki::xmp {

/// The call that this rank is in. What is not known is null.
struct Whereabouts {
  const char* call = nullptr;
  const std::string* array = nullptr;  ///< name of the array that the call is about, or of the left side
  const std::string* from = nullptr;   ///< of the right side
  std::int64_t elements = -1;          ///< of the first variable of a reduction or broadcast
  const NodeShape* nodes = nullptr;    ///< who takes part; null: the executing nodes
};
inline constinit Whereabouts in_no_call{};
inline constinit Whereabouts* doing_now = &in_no_call;
inline std::uint64_t calls_made = 0;
/// The place of the directive that a translated program has come to last; null in others.
inline const char* line_now = nullptr;

/// While it lives, this rank is in that call.
class Doing {
 public:
  explicit Doing(const char* call) : here_{.call = call}, before_(doing_now) {
    doing_now = &here_;
    ++calls_made;
  }
  ~Doing() { doing_now = before_; }
  Doing(const Doing&) = delete;
  Doing& operator=(const Doing&) = delete;

 private:
  Whereabouts here_;
  Whereabouts* before_;
};

/// From now on, waits of this rank answer others who ask, over this communicator.
void start_answers(MPI_Comm comm);
void end_answers();
/// Answers what others have asked since. Waits call it by themselves.
void answer();

/// After a wait has failed: a sentence that says where this rank and each other one of the call are. Asks them, for
/// at most three seconds. Empty where there is nobody else.
std::string whereabouts_of_all();

}  // namespace tasuki::xmp
