// Option `path`: lists of names, of which every direction of a halo may have its own.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "paths/path.hpp"
#include "tasuki/error.hpp"
#include "tasuki/planning.hpp"

using namespace tasuki;

namespace {

// Two rows of four GPUs each, which all reach each other.
Machine eight() {
  Machine machine = Machine::uniform(8, 1, 8, true);
  machine.costs["peer:put"].measured = machine.costs["peer:eager"].measured = true;
  machine.costs["mpi:staged"].measured = true;
  return machine;
}

HaloShape halo_with(const std::string& path) {
  HaloShape halo;
  halo.extents = {16, 32, 8};
  halo.grid.split = {2, 4, 1};
  halo.grid.periodic = {true, true, true};
  FieldShape field;
  field.memory = Memory::device;
  halo.fields = {field};
  halo.path = path;
  return halo;
}

std::string refusal(const HaloShape& halo) {
  try {
    plan(eight(), halo);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

// The paths of pieces whose label has `sides` (`?` for + and -).
void takes(const Planned& planned, std::string sides, const std::string& path) {
  int count = 0;
  for (const Message& message : planned.messages()) {
    std::string seen = message.label.substr(message.label.find(' ') + 1);
    for (char& side : seen) side = side == '0' ? '0' : '?';
    if (seen != sides) continue;
    ++count;
    CHECK_MESSAGE(message.path.starts_with(path), message.label);
  }
  CHECK(count > 0);
}

}  // namespace

TEST_CASE("a list of a direction holds for it, and the list before all of them for the others") {
  CHECK(wanted_in("auto", 2) == "auto");
  CHECK(wanted_in("mpi,peer", 2) == "mpi,peer");
  CHECK(wanted_in("i=mpi,j=peer", 0) == "mpi");
  CHECK(wanted_in("i=mpi,j=peer", 1) == "peer");
  CHECK(wanted_in("i=mpi,j=peer", 2) == "auto");
  CHECK(wanted_in("i=mpi,j=peer", -1) == "auto");
  CHECK(wanted_in("mpi,nccl,j=peer,nccl,i=auto", 2) == "mpi,nccl");
  CHECK(wanted_in("mpi,nccl,j=peer,nccl,i=auto", 1) == "peer,nccl");
  CHECK(wanted_in("mpi,nccl,j=peer,nccl,i=auto", 0) == "auto");
  CHECK(without_directions("mpi,j=peer") == "mpi");
  CHECK(names("i=mpi,j=peer", path_named("mpi:staged")));
  CHECK_FALSE(names("i=mpi,j=auto", path_named("nccl")));
  CHECK(forces(wanted_in("j=nccl", 1), path_named("nccl")));
  CHECK_FALSE(forces("nccl,peer", path_named("nccl")));
}

TEST_CASE("the old name of a path is understood in options, plans and machine files") {
  const Path& ll = path_named("peer:stamped");
  CHECK(ll.name == "peer:ll");
  CHECK(allows("mpi,peer:stamped", ll));
  CHECK(forces(wanted_in("i=peer:stamped", 0), ll));
  CHECK(names("i=mpi,j=peer:stamped", ll));
  CHECK_FALSE(allows("peer:stamped", path_named("peer:put")));
  CHECK(path_complaint("peer:stamped", 0).empty());
  CHECK(path_complaint("mpi,i=peer:stamped", 1).empty());
  const Machine machine =
      Machine::from_json(R"({"tasuki_machine": 1, "ranks": {"count": 2}, "paths": {"peer:stamped": {"latency": 3e-6}},)"
                         R"( "unusable": {"peer:stamped": "why"}})",
                         "old.json");
  CHECK(machine.costs.at("peer:ll").one_way.latency == 3e-6);
  CHECK(machine.unusable.at("peer:ll") == "why");
}

TEST_CASE("each direction takes its path, and pieces that cross several take that of the first") {
  for (const char* text : {"i=mpi,j=peer", "peer,i=mpi", "j=peer:eager,i=mpi"}) {
    const Planned planned = plan(eight(), halo_with(text));
    takes(planned, "?00", "mpi:staged");
    takes(planned, "0?0", std::string(text).find("eager") == std::string::npos ? "peer" : "peer:eager");
    takes(planned, "??0", "mpi:staged");
    CHECK(verify(planned.plans()).ok());
  }
  const Planned other = plan(eight(), halo_with("i=peer,j=mpi"));
  takes(other, "?00", "peer");
  takes(other, "0?0", "mpi:staged");
  CHECK(verify(other.plans()).ok());
}

TEST_CASE("directions that there are not, and lists that cannot be, are refused") {
  CHECK(refusal(halo_with("i=mpi,l=peer")) ==
        "option 'path' is 'i=mpi,l=peer', but there is no direction 'l'; this halo has i, j, k");
  CHECK(refusal(halo_with("x=mpi")) ==
        "option 'path' is 'x=mpi', but there is no direction 'x'; this halo has i, j, k");
  CHECK(refusal(halo_with("=mpi")) == "option 'path' is '=mpi', but there is no direction ''; this halo has i, j, k");
  CHECK(refusal(halo_with("ij=mpi")).find("there is no direction 'ij'") != std::string::npos);
  CHECK(refusal(halo_with("i=mpi,i=peer")).find("names direction 'i' twice; join its paths with commas") !=
        std::string::npos);
  CHECK(refusal(halo_with("i=mpj")).find("there is no path 'mpj'") == 0);
  CHECK(refusal(halo_with("i=")).find("there is no path ''") == 0);
  CHECK(refusal(halo_with("i=mpi=peer")).find("there is no path 'mpi=peer'") == 0);
  // A list that allows nothing: host paths for GPU memory.
  CHECK(refusal(halo_with("j=shared")).find("when path 'shared' is forced (") != std::string::npos);

  TransferShape transfer;
  transfer.to = 1;
  transfer.src = transfer.dst = Layout::bytes(8);
  transfer.path = "i=mpi";
  CHECK_THROWS_WITH_AS(plan(eight(), transfer),
                       "option 'path' is 'i=mpi', but only a halo has directions; give names of paths alone", Error);
}

TEST_CASE("a machine that names paths which there are not is refused, a family too") {
  const auto refused = [](const std::string& more) {
    try {
      const Machine machine = Machine::from_json(
          R"({"tasuki_machine": 1, "name": "m", "ranks": {"count": 2}, "inside": {"kind": "switch"}, )" + more + "}",
          "m");
      HaloShape halo;
      halo.extents = {16};
      halo.fields = {FieldShape()};
      plan(machine, halo);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  const std::string begin = "machine m: ";
  CHECK(
      refused(R"("uses": {"mpi": "inside"}, "paths": {"mpi": {"latency": 1e-6}}, "unusable": {"nccl": "not here"})") ==
      "no error");
  CHECK(refused(R"("uses": {"peer": "inside"})")
            .starts_with(begin + "uses.peer: there is no path 'peer'; paths are mpi, "));
  CHECK(
      refused(R"("paths": {"shared:putt": {"latency": 1e-6}})").starts_with(begin + "paths.shared:putt: there is no"));
  CHECK(refused(R"("unusable": {"mpii": "not here"})").starts_with(begin + "unusable.mpii: there is no path 'mpii'"));
}

TEST_CASE("a path that can carry a piece is offered between GPUs that reach each other") {
  const std::string text = plan(eight(), halo_with("auto")).explain(0);
  CHECK(text.find("reach each other") == std::string::npos);
  CHECK(text.find("mpi:staged 1.") != std::string::npos);
  CHECK(text.find("\nbalance: links of the GPU: ") != std::string::npos);
  CHECK(text.find("\nbalance: network outside: ") != std::string::npos);
  // A guess is not chosen beside prices that are known, but where the user names it.
  for (const Message& message : plan(eight(), halo_with("auto")).messages()) CHECK(message.path != "nccl");
  takes(plan(eight(), halo_with("nccl")), "?00", "nccl");
}
