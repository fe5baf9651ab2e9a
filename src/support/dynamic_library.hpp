// DynamicLibrary: a shared library that is opened at its first use, so that programs also run on machines without it.
#pragma once

#include <dlfcn.h>

#include <string>
#include <type_traits>

namespace tasuki {

class DynamicLibrary {
 public:
  /// Opens the first of the names that the loader finds. `what` is the library's name in messages. The library stays
  /// open until the process ends.
  template <class... Names>
  explicit DynamicLibrary(const std::string& what, const Names&... names) : what_(what) {
    std::string tried;
    const auto open = [&](const std::string& name) {
      if (handle_ != nullptr || name.empty()) return;
      handle_ = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
      if (handle_ == nullptr) tried += (tried.empty() ? "" : "; ") + std::string(dlerror());
    };
    (open(names), ...);
    if (handle_ == nullptr) {
      why_not_ = what_ + " cannot be opened (" + tried + "); install it or put it on LD_LIBRARY_PATH";
    }
  }

  /// Sets `function` to the library's function of that name, or to null if there is none.
  template <class Function>
  void find(Function& function, const char* name) {
    if (handle_ == nullptr) return;
    function = reinterpret_cast<std::remove_reference_t<Function>>(dlsym(handle_, name));
    if (function == nullptr && why_not_.empty()) why_not_ = "this " + what_ + " has no " + name;
  }

  /// Why the library, or one of the functions asked for, is missing; empty if nothing is.
  const std::string& why_not() const { return why_not_; }

 private:
  std::string what_;
  std::string why_not_;
  void* handle_ = nullptr;
};

}  // namespace tasuki
