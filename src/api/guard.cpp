// Status and last error of the C interface, and what its functions share.
#include "api/guard.hpp"

#include <cstdlib>
#include <functional>
#include <new>
#include <stdexcept>

#include <fmt/format.h>

namespace tasuki::api {
namespace {

thread_local std::string last_error;
thread_local const char* shown_error = "";

tasuki_status status_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::argument:
      return TASUKI_BAD_ARGUMENT;
    case ErrorKind::disagreement:
      return TASUKI_DISAGREEMENT;
    case ErrorKind::not_possible:
      return TASUKI_NOT_POSSIBLE;
    case ErrorKind::rank_died:
      return TASUKI_RANK_DIED;
    case ErrorKind::deadline:
      return TASUKI_DEADLINE;
    case ErrorKind::system:
      return TASUKI_SYSTEM;
  }
  return TASUKI_INTERNAL;
}

tasuki_status note(tasuki_status status, const char* function, const char* text) noexcept {
  try {
    last_error = fmt::format("{}: {}", function, text);
    shown_error = last_error.c_str();
  } catch (...) {
    shown_error = "no memory is left, not even for an error's text";
  }
  return status;
}

}  // namespace

tasuki_status note_exception(const char* function) noexcept {
  try {
    throw;
  } catch (const Failure& failure) {
    return note(failure.status, function, failure.what());
  } catch (const Error& error) {
    return note(status_of(error.kind()), function, error.what());
  } catch (const Interruption& interruption) {
    return note(TASUKI_INTERRUPTED, function, interruption.what());
  } catch (const std::bad_alloc&) {
    return note(TASUKI_NO_MEMORY, function, "the process has no memory left");
  } catch (const std::length_error&) {  // of a list or text of the standard library's
    return note(TASUKI_NO_MEMORY, function, "an argument asks for more memory than a process can have");
  } catch (const std::exception& exception) {
    return note(TASUKI_INTERNAL, function, exception.what());
  } catch (...) {
    return note(TASUKI_INTERNAL, function, "something was thrown that is not one of the standard library's exceptions");
  }
}

void bad_handle(const char* argument, std::uint64_t handle, const char* wanted) {
  throw Failure(TASUKI_BAD_HANDLE,
                fmt::format("argument '{}' is {}; it must be {} that is not freed", argument, what_is(handle), wanted));
}

void null_argument(const char* argument) {
  throw Failure(TASUKI_BAD_ARGUMENT, fmt::format("argument '{}' is null", argument));
}

void check_size(std::size_t size, std::size_t smallest, const char* argument) {
  constexpr std::size_t largest = 1U << 16U;
  if (size >= smallest && size <= largest) return;
  throw Failure(
      TASUKI_BAD_ARGUMENT,
      fmt::format("argument '{}' says that it has {} bytes; it has {} or more: set its member 'size' with the "
                  "initialiser TASUKI_..._INIT",
                  argument, size, smallest));
}

void check_unknown(const void* options, std::size_t known, std::size_t size, const char* argument) {
  const auto* bytes = static_cast<const unsigned char*>(options);
  for (std::size_t at = known; at < size; ++at) {
    if (bytes[at] == 0) continue;
    throw Failure(TASUKI_BAD_ARGUMENT,
                  fmt::format("argument '{}' has {} bytes and sets byte {}, of which this library, which knows {}, is "
                              "too old to know the meaning; run with the Tasuki that the program was compiled with",
                              argument, size, at, known));
  }
}

char* text_for_caller(const std::string& text) {
  auto* copy = static_cast<char*>(std::malloc(text.size() + 1));
  if (copy == nullptr) throw std::bad_alloc();
  std::memcpy(copy, text.c_str(), text.size() + 1);
  return copy;
}

void set_text(char** where, const char* argument, const std::string& text) {
  given(where, argument);
  *where = text_for_caller(text);
}

namespace {

// `settle(complaint)` throws if this rank or another has one.
void check_and_settle(const std::function<void()>& check, const std::function<void(const std::string&)>& settle) {
  std::exception_ptr mine;
  std::string complaint;
  try {
    check();
  } catch (const std::exception& error) {
    mine = std::current_exception();
    complaint = error.what();
    if (complaint.empty()) complaint = "failed";
  }
  try {
    settle(complaint);
  } catch (const Error&) {
    if (mine) std::rethrow_exception(mine);  // with its status
    throw;
  }
}

}  // namespace

void agree(const char* doing, const Context& context, const std::function<void()>& check) {
  check_and_settle(check, [&](const std::string& complaint) { context.agree(doing, {}, complaint); });
}

void agree(const char* doing, const Context& context, std::span<const int> ranks, const std::function<void()>& check) {
  check_and_settle(check, [&](const std::string& complaint) { context.agree(doing, {}, complaint, ranks); });
}

}  // namespace tasuki::api

using namespace tasuki::api;

const char* tasuki_last_error(void) {
  return shown_error;
}

const char* tasuki_status_name(int status) {
  constexpr const char* names[] = {"TASUKI_OK",          "TASUKI_BAD_HANDLE",   "TASUKI_BAD_ARGUMENT",
                                   "TASUKI_FAILED",      "TASUKI_NO_MEMORY",    "TASUKI_INTERNAL",
                                   "TASUKI_INTERRUPTED", "TASUKI_DISAGREEMENT", "TASUKI_NOT_POSSIBLE",
                                   "TASUKI_RANK_DIED",   "TASUKI_DEADLINE",     "TASUKI_SYSTEM"};
  return status >= 0 && status < static_cast<int>(std::size(names)) ? names[status] : "unknown status";
}

void tasuki_text_free(char* text) {
  std::free(text);
}
