// Resources: what several commands or messages want at once, each served in the order of asking. Cores, hardware of a
// rank, ports of hosts and links of networks, with the way that bytes take between two ranks.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tasuki/machine.hpp"

namespace tasuki::detail {

class Resources {
 public:
  explicit Resources(const Machine& machine);

  /// One of `servers` that serve at the same time is taken by each; `bandwidth` bytes a second, if it is a link.
  int add(std::string name, int servers = 1, double bandwidth = 0);

  /// Whom a request was served after; `after` is the command that held the resource until then, -1 if it was free.
  struct Served {
    double begin = 0;
    double end = 0;
    std::int32_t after = -1;
  };
  Served serve(int resource, double at, double seconds, std::int32_t who);

  /// Sends bytes from rank to rank: every link on the way serves them, the next as soon as the first of them come.
  /// `end` is when the last have left the last link; at once if the machine knows of no network between the two.
  Served carry(int from, int to, double at, std::int64_t bytes, std::int32_t who);
  bool has_way(int from, int to) { return !way(from, to).links.empty(); }
  /// Of the hops after the first.
  double latency(int from, int to) { return way(from, to).latency; }

  void forget_busy();  ///< counts again from here
  std::vector<std::pair<std::string, double>> busy() const;

 private:
  struct Resource {
    std::string name;
    double bandwidth = 0;
    double busy = 0;
    std::vector<std::pair<double, std::int32_t>> servers;  // when each is free again, and after whom
  };
  struct Way {
    std::vector<int> links;
    double latency = 0;
  };
  const Way& way(int from, int to);
  Way find(int from, int to);
  int named(const std::string& name, int servers, double bandwidth);
  void route(const Network& network, const std::string& where, int from, int to, Way& way);

  const Machine& machine_;
  std::vector<Resource> all_;
  std::map<std::string, int> names_;
  std::map<std::pair<int, int>, Way> ways_;
  std::vector<int> host_;   // per rank: number of its host among all
  std::vector<int> point_;  // per rank: where it is in the network of its island
};

}  // namespace tasuki::detail
