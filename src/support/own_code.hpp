// The library's own code in this process. Header only: one file includes it.
#pragma once

#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <mutex>

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22  // since Linux 5.14; older headers lack the name, older kernels return EINVAL
#endif

namespace tasuki {

namespace detail {

// Called for each loaded object. Maps the segment that holds this function, and ends the search there.
inline int map_if_own(dl_phdr_info* object, std::size_t, void*) {
  const auto here = reinterpret_cast<std::uintptr_t>(&map_if_own);
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = object->dlpi_phdr[i];
    const std::uintptr_t begin = object->dlpi_addr + segment.p_vaddr;
    const std::uintptr_t end = begin + segment.p_memsz;
    if (segment.p_type != PT_LOAD || here < begin || here >= end) continue;
    const std::uintptr_t first = begin / page * page;
    (void)madvise(reinterpret_cast<void*>(first), end - first, MADV_POPULATE_READ);  // a failure costs only time
    return 1;
  }
  return 0;
}

}  // namespace detail

/// Maps the pages of the library's code, once in a process. Otherwise each stretch of 64 KiB costs a page fault when it
/// is first run, and the first operation of a process runs into some twenty of them. Needs Linux 5.14; else it does
/// nothing.
inline void map_own_code() {
  static std::once_flag once;
  std::call_once(once, [] { dl_iterate_phdr(detail::map_if_own, nullptr); });
}

}  // namespace tasuki
