// Transport: carries the commands of a path that are not loads and stores, such as messages. A context has one object
// of each transport; it opens a channel for each such command of an operation.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "session/runtime.hpp"
#include "tasuki/plan.hpp"
#include "transports/channel.hpp"
#include "transports/located.hpp"

namespace tasuki {

/// A command for a transport. There is one address for each copy of its buffer.
struct CarriedCommand {
  std::int32_t command = 0;           ///< index in the plan
  std::int64_t rounds = 1;            ///< rounds of the command's loop; 1 outside loops
  std::vector<std::byte*> local;      ///< addresses of this rank's side
  std::vector<std::uint64_t> remote;  ///< addresses of the peer's side in the peer's process; empty for send and recv
};

/// What a transport needs to open the channels of an operation.
struct ChannelRequest {
  Runtime& runtime;
  const Plan& plan;
  const std::vector<Located>& where;  ///< addresses of all buffers of the plan
  std::span<const CarriedCommand> commands;
  /// The operation's number with this peer (`Channels::take`); equal on both ranks.
  std::function<std::int64_t(int peer)> number;
  bool threaded = false;  ///< whether the progress thread drives host channels, not the user's thread
  const Command& command(const CarriedCommand& carried) const {
    return plan.commands[static_cast<std::size_t>(carried.command)];
  }
};

class Transport {
 public:
  virtual ~Transport() = default;
  /// Called when a collective operation is made, before paths are chosen; `wanted` is the path option. Set-up that
  /// takes long or needs all ranks is done here, once. Collective.
  virtual void prepare(Runtime&, const std::string& wanted) { (void)wanted; }
  /// The same for an operation of two ranks on GPU memory. True if the two can use the transport. Both of them call it,
  /// with the same arguments.
  virtual bool prepare_pair(Runtime&, int peer, const std::string& wanted) {
    (void)peer;
    (void)wanted;
    return why_not().empty();
  }
  /// Why the transport cannot be used now; empty if it can. The same on all ranks.
  virtual std::string why_not() const { return {}; }
  /// Opens a channel for each command, in their order. Local. Throws `Error`.
  virtual std::vector<Channel> open(const ChannelRequest& request) = 0;
};

/// The transports of a context.
class Transports {
 public:
  explicit Transports(Runtime& runtime);           ///< Makes all transports, which try out what works. Collective.
  Transport& find(const std::string& name) const;  ///< Throws `Error` if this build has no transport of that name.
  /// Calls `Transport::prepare` of all transports. Collective.
  void prepare(Runtime& runtime, const std::string& wanted);
  /// Calls `Transport::prepare_pair` of the transports of GPU paths. Returns `unusable()` for these two ranks.
  std::map<std::string, std::string> prepare_pair(Runtime& runtime, int peer, const std::string& wanted);
  /// Path -> why it cannot be used; for `Machine::unusable`.
  std::map<std::string, std::string> unusable() const;

 private:
  std::map<std::string, std::unique_ptr<Transport>> transports_;
};

/// Registers a transport at load time.
struct TransportRegistration {
  using Make = std::unique_ptr<Transport> (*)(Runtime&);
  TransportRegistration(std::string name, Make make);
};

}  // namespace tasuki
