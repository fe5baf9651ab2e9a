// See route.hpp.
#include "route.hpp"

#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>
#include <mutex>
#include <unordered_map>

#include "ring.hpp"
#include "scratch.hpp"
#include "session.hpp"

namespace tasuki::mpi {

namespace {

struct Decision {
  Prices prices;
  Route route;
  bool mpi_pack_faster;
};
std::mutex mutex;
auto& decided = *new std::unordered_map<std::uint64_t, Decision>;  // by Counted::like

// Addresses below are no memory; MPI_BOTTOM with a type of absolute addresses is.
constexpr std::uintptr_t kFirstAddress = 4096;

const std::byte* base_of(const void* buffer) {
  return static_cast<const std::byte*>(buffer);
}

// CUDA's cuPointerGetAttribute, if the program has CUDA loaded.
using PointerAttribute = int (*)(void* data, int attribute, std::uintptr_t pointer);
PointerAttribute pointer_attribute() {
  static const bool driver = access("/dev/nvidiactl", F_OK) == 0 || access("/dev/dxg", F_OK) == 0;
  if (!driver) return nullptr;
  static std::atomic<PointerAttribute> found{nullptr};
  static std::atomic<unsigned long long> looked_at{0};
  PointerAttribute function = found.load(std::memory_order_relaxed);
  if (function != nullptr) return function;
  // It may be loaded late, so it is looked for again whenever something has been loaded.
  unsigned long long loaded = 0;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* data) {
        *static_cast<unsigned long long*>(data) = info->dlpi_adds;
        return 1;
      },
      &loaded);
  if (loaded == looked_at.load(std::memory_order_relaxed)) return nullptr;
  looked_at.store(loaded, std::memory_order_relaxed);
  void* cuda = dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_LAZY);
  if (cuda == nullptr) return nullptr;
  function = reinterpret_cast<PointerAttribute>(dlsym(cuda, "cuPointerGetAttribute"));
  found.store(function, std::memory_order_relaxed);
  return function;
}

bool on_gpu(std::uintptr_t address) {
  const PointerAttribute ask = pointer_attribute();
  if (ask == nullptr) return false;
  constexpr int kMemoryType = 2, kDevice = 2;  // CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_MEMORYTYPE_DEVICE
  unsigned type = 0;
  return ask(&type, kMemoryType, address) == 0 && type == kDevice;
}

}  // namespace

bool in_host_memory(const Counted& counted, const void* buffer) {
  const auto first =
      reinterpret_cast<std::uintptr_t>(buffer) + static_cast<std::uintptr_t>(counted.layout.true_lower_bound());
  return in_host_memory(reinterpret_cast<const void*>(first));
}

bool in_host_memory(const void* first) {
  const auto address = reinterpret_cast<std::uintptr_t>(first);
  return address >= kFirstAddress && !on_gpu(address);
}

namespace {

template <class Work>
double fastest(const Work& work) {
  // One warm run, then as many as fit into some time; what takes long is run once.
  constexpr double kLong = 100e3, kEnough = 20e3;
  double best = std::numeric_limits<double>::max(), all = 0;
  for (int i = 0; i < 12 && (i < 2 || all < kEnough); ++i) {
    const auto start = std::chrono::steady_clock::now();
    work();
    const double ns = std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count();
    best = std::min(best, ns);
    all += ns;
    if (ns > kLong && i > 0) break;
    if (ns > 10 * kLong) break;
  }
  return best;
}

double mpi_packs(const void* buffer, std::int64_t count, MPI_Datatype type, std::byte* out, std::int64_t bytes) {
  if (count > std::numeric_limits<int>::max()) return 0;
  return fastest([&] {
    int position = 0;
    PMPI_Pack(buffer, static_cast<int>(count), type, out, static_cast<int>(bytes), &position, session().own);
  });
}

constexpr std::int64_t kWorthSpelling = 1024;  // bytes
constexpr std::size_t kMostSpelt = 1024;       // blocks

// What MPI's messages take longer than its MPI_Pack of the whole, on each side, measured. MPICH packs a part of an
// element run by run; elements of one run, of which many follow each other, are not concerned. Open MPI packs and
// unpacks parts as fast as the whole if runs are of 8 bytes or less, and longer ones one by one.
double partly_packed_ns(const Layout& element, std::int64_t count) {
  const std::int64_t runs = element.runs();
  if (runs == 0) return 0;
#ifdef OPEN_MPI
  constexpr std::int64_t kShort = 8;
  constexpr double kByte = 0.11, kMost = 3;  // ns, of a run
  const double length = static_cast<double>(element.size()) / static_cast<double>(runs);
  const double each = length > kShort ? std::min(kByte * length, kMost) : 0;
#else
  const double each = runs > 1 ? 8 : 0;
#endif
  return each * static_cast<double>(runs * count);
}

Prices measure(const Counted& counted, const void* buffer, MPI_Datatype type, bool& mpi_pack_faster) {
  Prices prices;
  const std::int64_t bytes = counted.bytes();
  const Scratch out(bytes + 64);
  if (!out) return prices;
  prices.own = fastest([&] { counted.packer.pack(base_of(buffer), out.data()); });
  const double whole = mpi_packs(buffer, counted.count, type, out.data(), bytes + 64);
  mpi_pack_faster = whole < prices.own;
  prices.mpi = whole + partly_packed_ns(type_of(type).layout, counted.count);
  if (session().spelling && bytes >= kWorthSpelling && counted.layout.blocks().size() <= kMostSpelt) {
    try {
      Spelt spelt = to_mpi(counted.layout, Spelling::favourite, counted.unit);
      prices.spelt = mpi_packs(buffer, spelt.count, spelt.type, out.data(), bytes + 64) +
                     partly_packed_ns(from_mpi(spelt.type), spelt.count);
      PMPI_Type_free(&spelt.type);
    } catch (const std::exception&) {
      prices.spelt = 0;  // a number that this MPI's calls cannot take
    }
  }
  return prices;
}

bool worth_spelling(const Prices& prices) {
  constexpr double kGain = 1.2;
  return session().spelling && prices.spelt > 0 && prices.mpi > kGain * prices.spelt;
}

Route cheapest(const Prices& prices, std::int64_t bytes) {
  Prices best = prices;
  Route route = Route::original;
  if (worth_spelling(prices)) {
    best.mpi = prices.spelt;
    route = Route::spelt;
  }
  if (session().packing && prices.own > 0 && expected_packed(prices, bytes) < expected_by_mpi(best, bytes))
    route = Route::packed;
  return route;
}

std::int32_t ring_gain(const Decision& decision, std::int64_t bytes) {
  const Prices& prices = decision.prices;
  if (prices.own <= 0 || prices.mpi <= 0) return 1;  // not known
  Prices by_mpi = prices;
  if (decision.route == Route::spelt) by_mpi.mpi = prices.spelt;
  const double otherwise =
      decision.route == Route::packed ? expected_packed(prices, bytes) : expected_by_mpi(by_mpi, bytes);
  // The ring carries the bytes while they are packed, MPI's message before or after that, if they fit into the caches.
  constexpr double kCarried = 0.1;  // ns a byte
  constexpr std::int64_t kInCaches = 1 << 20;
  const double carried = kCarried * static_cast<double>(std::min(bytes, kInCaches));
  constexpr double kMost = 1e9;
  return static_cast<std::int32_t>(std::clamp(otherwise + carried - expected_in_ring(prices, bytes), -kMost, kMost));
}

void decide(Counted& counted, const void* buffer, MPI_Datatype type) {
  Decision decision{};
  bool known = false;
  {
    const std::scoped_lock lock(mutex);
    const auto found = decided.find(counted.like);
    known = found != decided.end();
    if (known) decision = found->second;
  }
  if (session().always) {
    decision.route = session().packing ? Route::packed : session().spelling ? Route::spelt : Route::original;
  } else if (!known) {
    decision.prices = measure(counted, buffer, type, decision.mpi_pack_faster);
    decision.route = cheapest(decision.prices, counted.bytes());
    const std::scoped_lock lock(mutex);
    decided.emplace(counted.like, decision);
  }
  // Also of what is packed: messages of collectives that end later are not.
  const bool all_spelt = session().always && session().spelling && counted.layout.blocks().size() <= kMostSpelt;
  if (decision.route == Route::spelt || worth_spelling(decision.prices) || all_spelt) {
    try {
      counted.spelt = to_mpi(counted.layout, Spelling::favourite, counted.unit);
    } catch (const std::exception&) {
      if (decision.route == Route::spelt) decision.route = Route::original;
    }
  }
  counted.prices = decision.prices;
  counted.ring_gain.store(session().always ? 1 : ring_gain(decision, counted.bytes()), std::memory_order_relaxed);
  counted.own_pack = session().packing && (session().always || !decision.mpi_pack_faster);
  counted.route.store(decision.route, std::memory_order_release);
}

std::mutex deciding;  // one layout at a time, so that each is measured and spelt once

Route decided_route(Counted& counted, const void* buffer, MPI_Datatype type) {
  const Route route = counted.route.load(std::memory_order_acquire);
  if (route != Route::undecided) [[likely]]
    return route;
  if (counted.contiguous || counted.bytes() == 0 || counted.bytes() > kMostBytes) {
    counted.route.store(Route::original, std::memory_order_release);
    return Route::original;
  }
  const std::scoped_lock lock(deciding);
  if (counted.route.load(std::memory_order_acquire) == Route::undecided) decide(counted, buffer, type);
  return counted.route.load(std::memory_order_acquire);
}

}  // namespace

Route route_of(Counted& counted, const void* buffer, MPI_Datatype type) {
  return decided_route(counted, buffer, type);
}

bool ring_pays(Counted& counted, const void* buffer, MPI_Datatype type) {
  if (counted.contiguous || counted.bytes() < kLeastShared) return false;
  decided_route(counted, buffer, type);
  return counted.ring_gain.load(std::memory_order_relaxed) > 0;
}

bool packs_faster(Counted& counted, const void* buffer, MPI_Datatype type) {
  return in_host_memory(counted, buffer) && route_of(counted, buffer, type) != Route::undecided && counted.own_pack;
}

const char* why_not_packed(const Counted& counted) {
  if (counted.contiguous) return "contiguous: MPI moves it as it is";
  if (counted.bytes() > kMostBytes) return "larger than what is packed (1 GiB)";
  if (!session().packing) return "packing is switched off";
  return counted.route.load() == Route::spelt ? "MPI is faster in its favourite spelling" : "MPI is faster";
}

// Up to some size an MPI packs all, sends and unpacks; above, it does these at the same time.
constexpr std::int64_t kOneAfterTheOther = 64 << 10;
#ifdef OPEN_MPI
constexpr std::int64_t kEager = 4096;  // larger messages wait for their receive
#endif

double expected_by_mpi(const Prices& prices, std::int64_t bytes) {
  constexpr double kOverlapped = 1.4;  // of Open MPI and MPICH, measured: the time of a message to that of packing it
  double ns = (bytes <= kOneAfterTheOther ? 2 : kOverlapped) * prices.mpi;
#ifdef OPEN_MPI
  // Small messages are packed, run by run, into lines that the receiver's processor has in its cache: each has to come
  // from there, which contiguous bytes do several at a time.
  constexpr double kScattered = 0.5;  // ns a byte, measured
  if (bytes <= kEager) ns += kScattered * static_cast<double>(bytes);
#endif
  return ns;
}

double expected_packed(const Prices& prices, std::int64_t bytes) {
  constexpr double kCalls = 120;          // ns: looking up, memory
  double copies = 2 * session().copy_ns;  // ns a byte
#ifdef OPEN_MPI
  constexpr double kCarried = 0.2;  // with two copies, from one processor to the other; measured
  if (bytes > kEager) copies = kCarried;
#endif
  return 2 * prices.own + copies * static_cast<double>(bytes) + kCalls;
}

double expected_in_ring(const Prices& prices, std::int64_t bytes) {
  constexpr double kEmptyMessage = 250;        // ns, more than what MPI's message takes beside packing
  constexpr std::int64_t kInCaches = 8 << 20;  // larger ones wait for the memory, on both sides
  const double sides = bytes < kInCaches ? 1.2 : 1.6;
  return kEmptyMessage + sides * prices.own;
}

}  // namespace tasuki::mpi
