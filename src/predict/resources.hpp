// Resources: what several commands or messages want at the same time: cores, hardware of a rank, ports of hosts, links
// of networks. Each serves requests in the order of asking. Also finds the links on the way between two ranks.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "machine/ways.hpp"
#include "tasuki/machine.hpp"

namespace tasuki::detail {

class Resources {
 public:
  explicit Resources(const Machine& machine);

  /// Up to `servers` requests are served at the same time. `bandwidth` in bytes per second, for links.
  int add(std::string name, int servers = 1, double bandwidth = 0);

  /// When a request was served, and after which command: `after` held the resource until then; -1 if it was free.
  struct Served {
    double begin = 0;
    double end = 0;
    std::int32_t after = -1;
  };
  double free_at(int resource) const;
  Served serve(int resource, double at, double seconds, std::int32_t who);

  /// Sends bytes from rank to rank, through the network `outside` or the one `inside`. Every link on the way serves
  /// them; a link begins when the first bytes have passed the one before. `end` is when the last bytes have left the
  /// last link; it is the beginning if the machine has no network between the two ranks.
  Served carry(int from, int to, bool outside, double at, std::int64_t bytes, std::int32_t who);
  bool has_way(int from, int to, bool outside) { return !way(from, to, outside).links.empty(); }
  /// The latency of all hops after the first.
  double latency(int from, int to, bool outside) { return way(from, to, outside).latency; }

  void forget_busy();  ///< begins the sums of busy time anew
  std::vector<std::pair<std::string, double>> busy() const;

 private:
  struct Resource {
    std::string name;
    double bandwidth = 0;
    double busy = 0;
    std::vector<std::pair<double, std::int32_t>> servers;  // of each: when it is free again, and after which command
  };
  struct Route {
    std::vector<int> links;
    double latency = 0;
  };
  const Route& way(int from, int to, bool outside);
  int named(const std::string& name, int servers, double bandwidth);

  const Machine& machine_;
  Ways network_;
  std::vector<Resource> all_;
  std::map<std::string, int> names_;
  std::map<std::tuple<int, int, bool>, Route> ways_;  // from, to, outside
};

}  // namespace tasuki::detail
