// Collectives: see collective.hpp.
#include "shapes/collective.hpp"

#include "collectives/algorithm.hpp"

namespace tasuki {

namespace {

class JointCollective final : public JointShape {
 public:
  JointCollective(const Machine& machine, const CollectiveShape& shape) : plan_(machine, shape) {}
  std::vector<Problem> problems(int first, int last) const override { return plan_.problems(first, last); }
  std::vector<BufferFact> facts(int rank) const override { return plan_.facts(rank); }

 private:
  CollectivePlan plan_;
};

}  // namespace

std::shared_ptr<const JointShape> joint(const Machine& machine, const CollectiveShape& collective) {
  check_gpus(machine, collective.memory);
  return std::make_shared<const JointCollective>(machine, collective);
}

CollectiveShape CollectiveShape::broadcast(int root, std::int64_t bytes) {
  CollectiveShape shape;
  shape.kind = CollectiveKind::broadcast;
  shape.root = root;
  shape.count = bytes;
  return shape;
}

}  // namespace tasuki
