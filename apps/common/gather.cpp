// What a verified run needs in memory, against what the host has.
#include "common/gather.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstring>
#include <fstream>

namespace apps {
namespace {

std::int64_t available_memory() {
  std::ifstream file("/proc/meminfo");
  for (std::string word; file >> word;) {
    std::int64_t kilobytes = 0;
    if (word == "MemAvailable:" && file >> kilobytes) return kilobytes * 1024;
  }
  return std::numeric_limits<std::int64_t>::max();  // unknown: let the allocation decide
}

struct Need {
  char host[256] = {};
  std::int64_t bytes = 0;
  std::int64_t available = 0;  // it changes while the ranks ask: the first rank's word counts
};

}  // namespace

void require_memory(const tasuki::Context& context, std::int64_t bytes, const std::string& what) {
  Need own;
  gethostname(own.host, sizeof own.host - 1);
  own.bytes = bytes;
  own.available = available_memory();
  const std::vector<Need> needs = context.allgather(own);
  for (std::size_t rank = 0; rank < needs.size(); ++rank) {
    std::int64_t needed = 0;
    const Need* first = nullptr;
    for (const Need& need : needs) {
      if (std::strcmp(need.host, needs[rank].host) != 0) continue;
      if (first == nullptr) first = &need;
      needed += need.bytes;
    }
    if (needed <= first->available) continue;
    throw tasuki::Error(fmt::format(
        "{} needs {:.1f} GiB on the host of rank {}, which has {:.1f} GiB available; "
        "choose a smaller size, or spread the ranks over more hosts",
        what, static_cast<double>(needed) / (1 << 30), rank, static_cast<double>(first->available) / (1 << 30)));
  }
}

UnlimitedWaits::UnlimitedWaits(const tasuki::Context& context) : context_(context), deadline_(context.deadline()) {
  context_.set_deadline(std::numeric_limits<double>::infinity());
}

UnlimitedWaits::~UnlimitedWaits() {
  context_.set_deadline(deadline_);
}

}  // namespace apps
