// Transport: who carries the commands of a path that loads and stores cannot do. The live half of a path: one object a
// context, which opens channels for an operation's commands.
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

/// A command that a transport shall carry. Addresses are per copy of its buffer.
struct CarriedCommand {
  std::int32_t command = 0;           ///< index in the plan
  std::int64_t rounds = 1;            ///< of the command's loop; 1 outside loops
  std::vector<std::byte*> local;      ///< this rank's side
  std::vector<std::uint64_t> remote;  ///< the peer's side, in the peer's address space; empty for send and recv
};

/// What a transport needs to know to open the channels of an operation.
struct ChannelRequest {
  Runtime& runtime;
  const Plan& plan;
  const std::vector<Located>& where;  ///< of all buffers of the plan
  std::span<const CarriedCommand> commands;
  /// Number of the operation among those that this rank and the peer have made together; equal on both.
  std::function<std::int64_t(int peer)> number;
  bool threaded = false;  ///< another thread than the user's will drive host channels
  const Command& command(const CarriedCommand& carried) const {
    return plan.commands[static_cast<std::size_t>(carried.command)];
  }
};

class Transport {
 public:
  virtual ~Transport() = default;
  /// Called by collective operations before paths are chosen, with the path that is wanted: what takes long, or all
  /// ranks together, is done once here. Collective.
  virtual void prepare(Runtime&, const std::string& wanted) { (void)wanted; }
  /// The same for two ranks that plan by themselves and whose memory is on GPUs: true if they can use the transport
  /// between them. Called by both of them, with the same arguments.
  virtual bool prepare_pair(Runtime&, int peer, const std::string& wanted) {
    (void)peer;
    (void)wanted;
    return why_not().empty();
  }
  /// Empty if the transport can be used now; else why not. The same on all ranks.
  virtual std::string why_not() const { return {}; }
  /// The channels of the commands, in their order. Local; throws `Error`.
  virtual std::vector<Channel> open(const ChannelRequest& request) = 0;
};

/// The transports of a context.
class Transports {
 public:
  explicit Transports(Runtime& runtime);           ///< Collective: transports try out what the ranks can do.
  Transport& find(const std::string& name) const;  ///< Throws `Error` if this build has none of that name.
  /// `Transport::prepare` of all. Collective.
  void prepare(Runtime& runtime, const std::string& wanted);
  /// `Transport::prepare_pair` of those that GPU paths need. Returns `unusable` as it is between the two.
  std::map<std::string, std::string> prepare_pair(Runtime& runtime, int peer, const std::string& wanted);
  /// By path: why it cannot be used. For `Machine::unusable`.
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
