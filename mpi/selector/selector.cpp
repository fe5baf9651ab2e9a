// libtasuki_mpi.so, which programs load before their MPI: it exports the calls that are taken over, sees at the first
// of them which MPI the program has, loads the library that was built for it, and leads each call there. Where there is
// none, or where something stands against it, calls go to the MPI as if this file were not loaded.
//
// Open MPI's Fortran calls PMPI_Send for mpi_send, and MPICH's calls PMPI_Startall for that of mpi_f08. So PMPI's names
// are exported too: calls that come from an MPI's Fortran libraries are led like the program's, all others to the MPI.
//
// It knows no MPI's header: arguments are passed on as the machine words that they are.
#include <dlfcn.h>
#include <elf.h>
#include <link.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>

#include "../names.hpp"

namespace {

enum Call : unsigned {
#define ENTRY(name, arguments) k##name,
  TASUKI_MPI_CALLS(ENTRY) TASUKI_MPI_LARGE_CALLS(ENTRY)
#undef ENTRY
      kCalls
};
constexpr std::array<const char*, kCalls> kNames{
#define ENTRY(name, arguments) "MPI_" #name,
    TASUKI_MPI_CALLS(ENTRY) TASUKI_MPI_LARGE_CALLS(ENTRY)
#undef ENTRY
};

constexpr std::array<const char*, kCalls> kProfilingNames{
#define ENTRY(name, arguments) "PMPI_" #name,
    TASUKI_MPI_CALLS(ENTRY) TASUKI_MPI_LARGE_CALLS(ENTRY)
#undef ENTRY
};

void* targets[kCalls];    // null: nobody has called yet
void* originals[kCalls];  // PMPI's, in the MPI itself; null if it has none

// Where the code of the MPI's Fortran lies.
struct Range {
  std::uintptr_t begin, end;
};
std::array<Range, 4> fortran{};

struct Kind {
  const char* soname;
  const char* library;  // null: an ABI that is left alone
};
constexpr std::array kKinds{Kind{"libmpi.so.40", "libtasuki_mpi_openmpi.so"},
                            Kind{"libmpi.so.12", "libtasuki_mpi_mpich.so"},
                            Kind{"libmpich.so.12", "libtasuki_mpi_mpich.so"}, Kind{"libmpi_abi.so.1", nullptr}};

std::string own_folder() {
  Dl_info info{};
  if (dladdr(&targets, &info) == 0 || info.dli_fname == nullptr) return "";
  const std::string path = info.dli_fname;
  const auto slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash + 1);
}

void say(const std::string& text) {
  std::fprintf(stderr, "tasuki: MPI library: %s\n", text.c_str());
}

void* object_of(void* symbol, std::string* file = nullptr) {
  Dl_info info{};
  if (symbol == nullptr || dladdr(symbol, &info) == 0) return nullptr;
  if (file != nullptr && info.dli_fname != nullptr) *file = info.dli_fname;
  return info.dli_fbase;
}

/// Another tool that takes one of the calls over: it must see them as the program makes them, and this library all of
/// them, or it would lose count of messages. Empty if there is none.
std::string other_tool(void* mpi) {
  void* const own = object_of(&targets);
  for (const char* name : kNames) {
    void* const mpis = object_of(dlsym(mpi, name));
    if (mpis == nullptr) continue;
    std::string file;
    void* const first = object_of(dlsym(RTLD_DEFAULT, name), &file);
    if (first != nullptr && first != own && first != mpis) return file;
    void* const next = object_of(dlsym(RTLD_NEXT, name), &file);
    if (next != nullptr && next != mpis) return file;
  }
  return {};
}

/// The library that takes the calls over; null if the program is to have its MPI alone.
void* library_for(const Kind& kind, void* mpi) {
  const char* layers = std::getenv("TASUKI_MPI_LAYERS");
  if (layers != nullptr && std::strcmp(layers, "none") == 0) return nullptr;
  if (kind.library == nullptr) {
    say(std::string("stands aside: ") + kind.soname + " is MPI's standard ABI, for which there is no build of it");
    return nullptr;
  }
  if (const std::string tool = other_tool(mpi); !tool.empty()) {
    say("stands aside: " + tool + " takes MPI's calls over too");
    return nullptr;
  }
  // The library names MPI's functions without naming the MPI, whose file has several names: they must be visible.
  dlopen(kind.soname, RTLD_NOLOAD | RTLD_NOW | RTLD_GLOBAL);
  const std::string path = own_folder() + kind.library;
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) say(std::string("stands aside: ") + dlerror());
  return library;
}

int find_fortran(dl_phdr_info* object, std::size_t, void* count) {
  const char* slash = std::strrchr(object->dlpi_name, '/');
  const char* file = slash != nullptr ? slash + 1 : object->dlpi_name;
  bool is_fortran = false;
  for (const char* name : {"libmpi_mpifh", "libmpi_usempi", "libmpifort", "libmpichfort"})
    is_fortran = is_fortran || std::strncmp(file, name, std::strlen(name)) == 0;
  if (!is_fortran) return 0;
  std::size_t& found = *static_cast<std::size_t*>(count);
  for (int i = 0; i < object->dlpi_phnum && found < fortran.size(); ++i) {
    const auto& part = object->dlpi_phdr[i];
    if (part.p_type != PT_LOAD || (part.p_flags & PF_X) == 0) continue;
    const std::uintptr_t begin = object->dlpi_addr + part.p_vaddr;
    fortran[found++] = {begin, begin + part.p_memsz};
  }
  return 0;
}

void find_targets() {
  std::size_t parts = 0;
  dl_iterate_phdr(find_fortran, &parts);
  for (const Kind& kind : kKinds) {
    void* mpi = dlopen(kind.soname, RTLD_NOLOAD | RTLD_LAZY);
    if (mpi == nullptr) continue;
    void* library = library_for(kind, mpi);
    for (unsigned i = 0; i < kCalls; ++i) {
      void* target = library != nullptr ? dlsym(library, (std::string("tasuki_") + kNames[i]).c_str()) : nullptr;
      if (target == nullptr) target = dlsym(RTLD_NEXT, kNames[i]);
      if (target == nullptr) target = dlsym(mpi, kNames[i]);
      __atomic_store_n(&originals[i], dlsym(mpi, kProfilingNames[i]), __ATOMIC_RELEASE);
      __atomic_store_n(&targets[i], target, __ATOMIC_RELEASE);
    }
    return;
  }
}

void* find(unsigned call, void* const* of, const char* name) {
  static std::once_flag once;
  std::call_once(once, find_targets);
  if (of[call] == nullptr) {
    say(std::string(name) + " was called, but no MPI that has it is loaded");
    std::abort();
  }
  return of[call];
}

inline void* target(unsigned call) {
  void* found = __atomic_load_n(&targets[call], __ATOMIC_ACQUIRE);
  return __builtin_expect(found != nullptr, 1) ? found : find(call, targets, kNames[call]);
}

// Of a call by PMPI's name. The libraries that calls are led to call it as well, and never by a jump
// (mpi/CMakeLists.txt).
inline void* target_below(unsigned call, const void* caller) {
  void* found = __atomic_load_n(&originals[call], __ATOMIC_ACQUIRE);
  if (__builtin_expect(found == nullptr, 0)) found = find(call, originals, kProfilingNames[call]);
  const auto at = reinterpret_cast<std::uintptr_t>(caller);
  for (const Range& range : fortran) {
    if (range.end == 0) break;
    if (at >= range.begin && at < range.end) return target(call);
  }
  return found;
}

// Whether an MPI is loaded that has `name`. This runs while the program's symbols are bound, when nothing may be
// loaded.
struct Search {
  const char* name;
  bool found;
};

std::uint32_t gnu_hash(const char* name) {
  std::uint32_t hash = 5381;
  for (; *name != 0; ++name) hash = hash * 33 + static_cast<unsigned char>(*name);
  return hash;
}

bool defines(const dl_phdr_info& object, const char* name) {
  const ElfW(Dyn)* dynamic = nullptr;
  for (int i = 0; i < object.dlpi_phnum; ++i)
    if (object.dlpi_phdr[i].p_type == PT_DYNAMIC)
      dynamic = reinterpret_cast<const ElfW(Dyn)*>(object.dlpi_addr + object.dlpi_phdr[i].p_vaddr);
  if (dynamic == nullptr) return false;
  const ElfW(Sym)* symbols = nullptr;
  const char* strings = nullptr;
  const std::uint32_t* table = nullptr;
  for (; dynamic->d_tag != DT_NULL; ++dynamic) {
    if (dynamic->d_tag == DT_SYMTAB) symbols = reinterpret_cast<const ElfW(Sym)*>(dynamic->d_un.d_ptr);
    if (dynamic->d_tag == DT_STRTAB) strings = reinterpret_cast<const char*>(dynamic->d_un.d_ptr);
    if (dynamic->d_tag == DT_GNU_HASH) table = reinterpret_cast<const std::uint32_t*>(dynamic->d_un.d_ptr);
  }
  if (symbols == nullptr || strings == nullptr || table == nullptr) return false;
  const std::uint32_t buckets = table[0], first = table[1], words = table[2];
  const std::uint32_t* heads = table + 4 + words * (sizeof(ElfW(Addr)) / 4);
  const std::uint32_t* chains = heads + buckets;
  const std::uint32_t hash = gnu_hash(name);
  std::uint32_t at = heads[hash % buckets];
  if (at < first) return false;
  for (;; ++at) {
    const std::uint32_t here = chains[at - first];
    if ((here | 1) == (hash | 1) && std::strcmp(strings + symbols[at].st_name, name) == 0)
      return symbols[at].st_shndx != SHN_UNDEF;
    if ((here & 1) != 0) return false;
  }
}

int look_at(dl_phdr_info* object, std::size_t, void* data) {
  Search& search = *static_cast<Search*>(data);
  const char* slash = std::strrchr(object->dlpi_name, '/');
  const char* file = slash != nullptr ? slash + 1 : object->dlpi_name;
  if (std::strncmp(file, "libmpi", 6) != 0) return 0;
  search.found = defines(*object, search.name);
  return search.found ? 1 : 0;
}

bool loaded_mpi_has(const char* name) {
  Search search{name, false};
  dl_iterate_phdr(look_at, &search);
  return search.found;
}

}  // namespace

#define W std::uintptr_t
#define TYPES_0
#define TYPES_1 W a
#define TYPES_2 TYPES_1, W b
#define TYPES_3 TYPES_2, W c
#define TYPES_4 TYPES_3, W d
#define TYPES_5 TYPES_4, W e
#define TYPES_6 TYPES_5, W f
#define TYPES_7 TYPES_6, W g
#define TYPES_9 TYPES_7, W h, W i
#define TYPES_10 TYPES_9, W j
#define TYPES_11 TYPES_10, W k
#define TYPES_12 TYPES_10, W k, W l
#define TYPES_13 TYPES_12, W m
#define VALUES_0
#define VALUES_1 a
#define VALUES_2 VALUES_1, b
#define VALUES_3 VALUES_2, c
#define VALUES_4 VALUES_3, d
#define VALUES_5 VALUES_4, e
#define VALUES_6 VALUES_5, f
#define VALUES_7 VALUES_6, g
#define VALUES_9 VALUES_7, h, i
#define VALUES_10 VALUES_9, j
#define VALUES_11 VALUES_10, k
#define VALUES_12 VALUES_10, k, l
#define VALUES_13 VALUES_12, m

extern "C" {

#define LEAD(name, arguments)                                                                 \
  [[gnu::visibility("default")]] int MPI_##name(TYPES_##arguments) {                          \
    return reinterpret_cast<int (*)(TYPES_##arguments)>(target(k##name))(VALUES_##arguments); \
  }
TASUKI_MPI_CALLS(LEAD)

#define LEAD_BELOW(name, arguments)                                                 \
  [[gnu::visibility("default")]] int PMPI_##name(TYPES_##arguments) {               \
    void* const found = target_below(k##name, __builtin_return_address(0));         \
    return reinterpret_cast<int (*)(TYPES_##arguments)>(found)(VALUES_##arguments); \
  }
TASUKI_MPI_CALLS(LEAD_BELOW)

// A program asks by a weak symbol whether its MPI has these. What it gets must be null if not.
#define LEAD_IF_THERE(name, arguments)                                                        \
  static int lead_##name(TYPES_##arguments) {                                                 \
    return reinterpret_cast<int (*)(TYPES_##arguments)>(target(k##name))(VALUES_##arguments); \
  }                                                                                           \
  static int (*resolve_##name())(TYPES_##arguments) {                                         \
    return loaded_mpi_has("MPI_" #name) ? lead_##name : nullptr;                              \
  }                                                                                           \
  [[gnu::visibility("default"), gnu::ifunc("resolve_" #name)]] int MPI_##name(TYPES_##arguments);
TASUKI_MPI_LARGE_CALLS(LEAD_IF_THERE)

}  // extern "C"
