// See guard.hpp.
#include "guard.hpp"

#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <new>

#include "whereabouts.hpp"
#include "world.hpp"
#include "xmp.h"

namespace tasuki::xmp {

namespace {

int action = XMP_STOP;
std::string last_error;

int failed(int status, const char* call, const char* text) {
  last_error = fmt::format("{}: {}", call, text);
  if (action == XMP_RETURN) return status;
  std::fprintf(stderr, "%s\n", last_error.c_str());
  std::fflush(stderr);
  int running = 0;
  int over = 0;
  MPI_Initialized(&running);
  MPI_Finalized(&over);
  if (running != 0 && over == 0) MPI_Abort(MPI_COMM_WORLD, status);
  std::exit(status);
}

}  // namespace

int note_exception(const char* call) noexcept {
  try {
    throw;
  } catch (const Error& error) {
    std::string text = error.what();
    // Of those who have waited in vain, or disagree. A rank that has died is asked nothing.
    if (error.kind() == ErrorKind::deadline || error.kind() == ErrorKind::disagreement ||
        text.find("gave up") != std::string::npos)
      if (const std::string where = whereabouts_of_all(); !where.empty()) text += "; " + where;
    return failed(1 + static_cast<int>(error.kind()), call, text.c_str());
  } catch (const std::bad_alloc&) {
    return failed(XMP_NO_MEMORY, call, "the process has no memory left");
  } catch (const std::exception& error) {
    return failed(XMP_SYSTEM, call, error.what());
  }
}

void refuse(const std::string& text) {
  throw Error(started() ? fmt::format("rank {}: {}", world().rank(), text) : text);
}

}  // namespace tasuki::xmp

extern "C" {

void xmp_on_error(int what) {
  tasuki::xmp::action = what;
}

const char* xmp_last_error(void) {
  return tasuki::xmp::last_error.c_str();
}
}
