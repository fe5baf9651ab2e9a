// What every function of the C interface does: look its handles up, read its options, and turn exceptions into a
// status and a text.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <type_traits>

#include "api/handles.hpp"
#include "tasuki/context.hpp"
#include "tasuki/error.hpp"
#include "tasuki/tasuki.h"

namespace tasuki::api {

/// A failure that has a status of its own.
class Failure : public Error {
 public:
  Failure(tasuki_status kind, const std::string& text) : Error(text), status(kind) {}
  tasuki_status status;
};

/// Notes what is being handled as this thread's last error. Called in a catch clause.
tasuki_status note_exception(const char* function) noexcept;

/// Runs the body of the C function called `function`.
template <class Body>
tasuki_status guarded(const char* function, Body&& body) noexcept {
  try {
    body();
    return TASUKI_OK;
  } catch (...) {
    return note_exception(function);
  }
}

[[noreturn]] void bad_handle(const char* argument, std::uint64_t handle, const char* wanted);
[[noreturn]] void null_argument(const char* argument);

/// The types of C's handles and what is kept for each.
template <class Handle>
struct Kept;

template <class Handle>
std::uint64_t value_of(Handle handle) {
  // The pointer itself is what is meant.
  static_assert(sizeof(Handle) == sizeof(std::uint64_t), "handles need 64 bits");  // NOLINT(bugprone-sizeof-expression)
  return reinterpret_cast<std::uint64_t>(handle);
}

/// The object that a handle names. Throws `Failure` if there is none.
template <class Handle>
typename Kept<Handle>::type& get(Handle handle, const char* argument) {
  Slot* const slot = find_slot(value_of(handle), Kept<Handle>::kind);
  if (slot == nullptr) [[unlikely]]
    bad_handle(argument, value_of(handle), Kept<Handle>::name);
  return *static_cast<typename Kept<Handle>::type*>(slot->object);
}

/// `pointer`, which must not be null.
template <class T>
T* given(T* pointer, const char* argument) {
  if (pointer == nullptr) null_argument(argument);
  return pointer;
}

/// A new handle for `object`.
template <class Handle>
Handle keep(std::unique_ptr<typename Kept<Handle>::type> object) {
  const std::uint64_t handle = add_handle(Kept<Handle>::kind, object.get());
  static_cast<void>(object.release());  // kept under the handle from here on
  return reinterpret_cast<Handle>(handle);
}

/// Destroys what `*handle` names and sets the handle to null, unless `before(object)` throws.
template <class Handle, class Before>
tasuki_status let_go(const char* function, Handle* handle, const char* argument, Before&& before) {
  return guarded(function, [&] {
    Slot* const slot = find_slot(value_of(*given(handle, argument)), Kept<Handle>::kind);
    if (slot == nullptr) bad_handle(argument, value_of(*handle), Kept<Handle>::name);
    auto* const object = static_cast<typename Kept<Handle>::type*>(slot->object);
    before(*object);
    remove_handle(*slot);
    *handle = nullptr;
    delete object;
  });
}

/// Checks a size that a caller has written into a struct; `smallest` is the struct's first version.
void check_size(std::size_t size, std::size_t smallest, const char* argument);
/// Throws if the caller's struct has members that this library does not know, and one of them is set.
void check_unknown(const void* options, std::size_t known, std::size_t size, const char* argument);

/// The caller's options over the defaults: members that his version lacks keep their default. `smallest` stays what it
/// is when the struct grows: the size that its first version had.
template <class Options>
Options read_options(const Options* options, Options defaults, std::size_t smallest) {
  static_assert(std::is_trivially_copyable_v<Options>);
  if (options == nullptr) return defaults;
  check_size(options->size, smallest, "options");
  check_unknown(options, sizeof(Options), options->size, "options");
  std::memcpy(&defaults, options, std::min(options->size, sizeof(Options)));
  return defaults;
}

/// As much of `info` as the caller knows.
template <class Info>
void write_info(Info* info, Info value, std::size_t smallest) {
  check_size(given(info, "info")->size, smallest, "info");
  value.size = info->size;
  std::memcpy(info, &value, std::min(info->size, sizeof(Info)));
}

/// A text for the caller, who gives it back with `tasuki_text_free`.
char* text_for_caller(const std::string& text);
/// Writes such a text where the caller wants it.
void set_text(char** where, const char* argument, const std::string& text);

/// Runs `check` on this rank; what it throws is thrown by all ranks, so that none goes on alone. `doing` is what the
/// ranks are about to do, which must be the same. Collective.
void agree(const char* doing, const Context& context, const std::function<void()>& check);
/// The same among `ranks` only, or on a rank that is not among them for itself.
void agree(const char* doing, const Context& context, std::span<const int> ranks, const std::function<void()>& check);

}  // namespace tasuki::api
