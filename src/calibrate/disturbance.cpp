// Disturbance: see disturbance.hpp.
#include "calibrate/disturbance.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>

#include "layout/encoding.hpp"
#include "session/collective.hpp"
#include "support/text_file.hpp"

namespace tasuki {

namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double seconds_of(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

// Seconds in which the cores of the host did something, or others than this virtual machine had them.
double busy_seconds() {
  const auto text = read_text("/proc/stat");
  unsigned long long user = 0, nice = 0, system = 0, idle = 0, waiting = 0, irq = 0, soft_irq = 0, stolen = 0;
  if (!text || std::sscanf(text->c_str(), "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &user, &nice, &system, &idle,
                           &waiting, &irq, &soft_irq, &stolen) != 8)
    return -1;
  return static_cast<double>(user + nice + system + irq + soft_irq + stolen) /
         static_cast<double>(sysconf(_SC_CLK_TCK));
}

Usage usage() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  return {now(), busy_seconds(), seconds_of(used.ru_utime) + seconds_of(used.ru_stime),
          static_cast<double>(used.ru_nivcsw)};
}

}  // namespace

UsageWatch::UsageWatch() : begin_(now()), at_begin_(usage()) {}

Usage UsageWatch::so_far() const {
  const Usage all = usage();
  Usage since;
  since.seconds = all.seconds - begin_;
  since.host = all.host < 0 || at_begin_.host < 0 ? -1 : all.host - at_begin_.host;
  since.process = all.process - at_begin_.process;
  since.switches = all.switches - at_begin_.switches;
  return since;
}

double load_of_last_minute() {
  const auto text = read_text("/proc/loadavg");
  double load = -1;
  if (!text || text->empty()) return load;
  // Without a locale, in which a comma may stand for the point.
  int whole = 0, hundredths = 0;
  if (std::sscanf(text->c_str(), "%d.%2d", &whole, &hundredths) == 2) load = whole + hundredths / 100.0;
  return load;
}

Disturbance disturbance(Runtime& runtime, const Usage& mine) {
  const auto& processes = runtime.topology().processes;
  const auto all = gather_texts(runtime, encoded(mine), "measuring the machine");
  const auto first = decoded<Usage>(all[0]);
  Disturbance found;
  found.seconds = first.seconds;
  double own = 0;
  for (std::size_t r = 0; r < all.size(); ++r) {
    if (processes[r].host != processes[0].host) continue;
    const auto usage = decoded<Usage>(all[r]);
    // Ranks that are threads of one process use what it uses.
    own = runtime.topology().threads ? usage.process : own + usage.process;
    ++found.ranks;
    if (usage.seconds > 0) found.switches = std::max(found.switches, usage.switches / usage.seconds);
  }
  if (first.host >= 0 && first.seconds > 0) found.others = std::max((first.host - own) / first.seconds, 0.0);
  return found;
}

}  // namespace tasuki
