// Prices that the process keeps: see process_prices.hpp.
#include "calibrate/process_prices.hpp"

#include <fmt/format.h>

#include <map>
#include <mutex>
#include <string>

#include "calibrate/profile_file.hpp"
#include "session/collective.hpp"

namespace tasuki {

namespace {

// Ranks may be threads, so several may come at once. By the ranks' processes: the contents of a profile's file.
struct Kept {
  std::mutex mutex;
  std::map<std::string, std::string> texts;
};

Kept& kept() {
  static Kept all;
  return all;
}

std::string processes_of(const Runtime& part) {
  std::string text;
  for (const Process& one : part.topology().processes)
    text += fmt::format("{} {} {} {};", one.name, one.pid, one.born, one.island);
  return text;
}

}  // namespace

void remember_prices(const Runtime& part) {
  if (part.rank() != 0) return;
  Profile profile = profile_of(part);
  profile.set_corrections({});  // what a context has tuned stays with it
  Kept& all = kept();
  const std::lock_guard lock(all.mutex);
  all.texts[processes_of(part)] = profile.to_json("this process");
}

Profile remembered_prices(Runtime& part) {
  std::string text;
  if (part.rank() == 0) {
    Kept& all = kept();
    const std::lock_guard lock(all.mutex);
    if (const auto found = all.texts.find(processes_of(part)); found != all.texts.end()) text = found->second;
  }
  text = text_of_root(part, text, "reading the prices of an earlier subset");
  return text.empty() ? Profile() : Profile::parsed(text);
}

}  // namespace tasuki
