// The register of all peers.
#include "peer.hpp"

#include <algorithm>

namespace bench {
namespace {

std::vector<Peer>& all_peers() {
  static std::vector<Peer> peers;  // inside a function: peers register before main, in any order
  return peers;
}

}  // namespace

const std::vector<Peer>& peers() {
  return all_peers();
}

RegisterPeer::RegisterPeer(Peer peer) {
  const auto before = [](const Peer& a, const Peer& b) {
    return a.name != b.name && (a.name == kReference || (b.name != kReference && a.name < b.name));
  };
  auto& peers = all_peers();
  peers.insert(std::upper_bound(peers.begin(), peers.end(), peer, before), std::move(peer));
}

}  // namespace bench
