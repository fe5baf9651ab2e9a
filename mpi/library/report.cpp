// See report.hpp.
#include "report.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

#include "route.hpp"
#include "session.hpp"

namespace tasuki::mpi {

bool reporting = false;

namespace {

struct Line {
  std::string call, place, type, why;
  Route route = Route::original;
  bool contiguous = false;
  std::int64_t calls = 0, bytes = 0;
  double won_ns = 0;
  Prices prices;
};
using Key = std::tuple<std::string, const void*, std::uint64_t, std::int64_t, Route>;
std::mutex mutex;
auto& lines = *new std::map<Key, Line>;
std::string path;  // of the JSON file; empty: printed

const char* name_of(Route route) {
  switch (route) {
    case Route::packed:
      return "packing";
    case Route::spelt:
      return "spelling";
    case Route::ring:
      return "ring";
    default:
      return "MPI";
  }
}

// `program+0x1234`, or the function's name where it is exported.
std::string place_of(const void* caller) {
  Dl_info info{};
  if (dladdr(caller, &info) == 0 || info.dli_fname == nullptr) return "?";
  const char* slash = std::strrchr(info.dli_fname, '/');
  const std::string file = slash != nullptr ? slash + 1 : info.dli_fname;
  std::array<char, 32> offset{};
  if (info.dli_sname != nullptr) {
    std::snprintf(offset.data(), offset.size(), "+0x%tx",
                  static_cast<const char*>(caller) - static_cast<const char*>(info.dli_saddr));
    return file + ": " + info.dli_sname + offset.data();
  }
  std::snprintf(offset.data(), offset.size(), "+0x%tx",
                static_cast<const char*>(caller) - static_cast<const char*>(info.dli_fbase));
  return file + offset.data();
}

// Half of a message: its other half is noted by the other side.
double won(const Counted& counted, Route route) {
  const Prices& prices = counted.prices;
  if (prices.mpi == 0) return 0;
  const double before = expected_by_mpi(prices, counted.bytes()) / 2;
  if (route == Route::ring) return before - expected_in_ring(prices, counted.bytes()) / 2;
  if (route == Route::packed) return before - expected_packed(prices, counted.bytes()) / 2;
  if (route == Route::spelt) return before * (1 - prices.spelt / prices.mpi);
  return 0;
}

Line& line_of(const char* call, const void* caller, std::uint64_t like, std::int64_t count, Route route) {
  return lines[{call, caller, like, count, route}];
}

struct Sum {
  std::int64_t calls = 0, bytes = 0;
};

double percent(std::int64_t part, std::int64_t whole) {
  return whole > 0 ? 100.0 * static_cast<double>(part) / static_cast<double>(whole) : 0;
}

void print(const std::vector<const Line*>& sorted) {
  std::array<Sum, 5> by_route{};
  Sum typed, contiguous;
  double won_ns = 0;
  for (const Line* line : sorted) {
    Sum& sum = line->contiguous ? contiguous : by_route[static_cast<std::size_t>(line->route)];
    sum.calls += line->calls;
    sum.bytes += line->bytes;
    if (line->contiguous) continue;
    typed.calls += line->calls;
    typed.bytes += line->bytes;
    won_ns += line->won_ns;
  }
  std::fprintf(stderr, "tasuki: MPI library, rank %d: %" PRId64 " calls of %" PRId64 " bytes in pieces",
               session().world_rank, typed.calls, typed.bytes);
  for (const Route route : {Route::ring, Route::packed, Route::spelt, Route::original}) {
    const Sum& sum = by_route[static_cast<std::size_t>(route)];
    std::fprintf(stderr, "; %s %.1f %% of the calls, %.1f %% of the bytes", name_of(route),
                 percent(sum.calls, typed.calls), percent(sum.bytes, typed.bytes));
  }
  std::fprintf(stderr, "; won about %.3f ms. Contiguous: %" PRId64 " calls of derived types, left to MPI\n",
               won_ns / 1e6, contiguous.calls);
  constexpr std::size_t kMost = 40;
  for (std::size_t i = 0; i < std::min(sorted.size(), kMost); ++i) {
    const Line& line = *sorted[i];
    std::fprintf(stderr, "  %-24s %10" PRId64 " x %10" PRId64 " B  %-8s %9.3f ms  %s  [%s]%s%s\n", line.call.c_str(),
                 line.calls, line.calls > 0 ? line.bytes / line.calls : 0, name_of(line.route), line.won_ns / 1e6,
                 line.type.c_str(), line.place.c_str(), line.why.empty() ? "" : "  ", line.why.c_str());
  }
  if (sorted.size() > kMost)
    std::fprintf(stderr, "  and %zu others; TASUKI_MPI_REPORT=FILE writes all\n", sorted.size() - kMost);
}

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return out + '"';
}

void write(const std::vector<const Line*>& sorted) {
  const std::string file = path + "." + std::to_string(session().world_rank);
  std::FILE* out = std::fopen(file.c_str(), "w");
  if (out == nullptr) {
    std::fprintf(stderr, "tasuki: MPI library: the report cannot be written to %s (TASUKI_MPI_REPORT): %s\n",
                 file.c_str(), std::strerror(errno));
    return;
  }
  std::fprintf(out, "{\"rank\": %d, \"lines\": [", session().world_rank);
  const char* comma = "\n";
  for (const Line* line : sorted) {
    std::fprintf(
        out,
        "%s  {\"call\": %s, \"place\": %s, \"type\": %s, \"layer\": \"%s\", \"contiguous\": %s, \"calls\": %" PRId64
        ", \"bytes\": %" PRId64
        ", \"won_ns\": %.0f, \"why\": %s, \"mpi_ns\": %.0f, \"spelt_ns\": %.0f, \"own_ns\": %.0f}",
        comma, quoted(line->call).c_str(), quoted(line->place).c_str(), quoted(line->type).c_str(),
        name_of(line->route), line->contiguous ? "true" : "false", line->calls, line->bytes, line->won_ns,
        quoted(line->why).c_str(), line->prices.mpi, line->prices.spelt, line->prices.own);
    comma = ",\n";
  }
  std::fprintf(out, "\n]}\n");
  std::fclose(out);
}

}  // namespace

void begin_report() {
  const char* wanted = std::getenv("TASUKI_MPI_REPORT");
  if (wanted == nullptr || *wanted == 0 || std::strcmp(wanted, "0") == 0) return;
  if (std::strcmp(wanted, "1") != 0) path = wanted;
  reporting = true;
}

void end_report() {
  if (!reporting) return;
  reporting = false;
  const std::scoped_lock lock(mutex);
  std::vector<const Line*> sorted;
  for (const auto& [key, line] : lines) sorted.push_back(&line);
  std::sort(sorted.begin(), sorted.end(), [](const Line* a, const Line* b) { return a->bytes > b->bytes; });
  if (!path.empty())
    write(sorted);
  else if (session().world_rank == 0)
    print(sorted);
}

void note_call(const char* call, const void* caller, const Counted& counted, Route route) {
  const std::scoped_lock lock(mutex);
  Line& line = line_of(call, caller, counted.like, counted.count, route);
  if (line.calls == 0) {
    line.call = call;
    line.place = place_of(caller);
    line.type = counted.layout.describe();
    line.route = route;
    line.contiguous = counted.contiguous;
    line.prices = counted.prices;
    if (route != Route::packed && route != Route::ring) line.why = why_not_packed(counted);
  }
  ++line.calls;
  line.bytes += counted.bytes();
  line.won_ns += won(counted, route);
}

void note_unknown(const char* call, const void* caller, const Type& type) {
  if (!reporting) return;
  const std::scoped_lock lock(mutex);
  Line& line = line_of(call, caller, 0, 0, Route::original);
  if (line.calls == 0) {
    line.call = call;
    line.place = place_of(caller);
    line.type = "a type that is not understood";
    line.why = type.unknown;
  }
  ++line.calls;
}

}  // namespace tasuki::mpi
