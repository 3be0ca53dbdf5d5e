// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>

#include "conformance/contract/program.h"
#include "conformance/contract/samples.h"

// Contract cases with programs of two and four participants, which are launched at once on as many devices.

namespace collet::conformance {
namespace {

using hlo::Literal;

// A program of several participants.
struct Together {
  std::string name, body;
  uint32_t replicas = 2, partitions = 1;
  uint32_t participants() const { return replicas * partitions; }
};

struct Many {
  std::vector<Buffer> buffers;
  std::vector<collet_argument> arguments, results;
};

collet_argument whole(const Buffer& buffer, uint64_t bytes) {
  collet_argument out{};
  out.buffer = buffer.handle();
  out.bytes = bytes;
  return out;
}

void run(Contract& c, const Together& sample) {
  const uint32_t participants = sample.participants();
  if (!c.plugin().computes()) return c.skip("the backend runs no ops");
  const auto instance = Instance::open(c, participants);
  if (!instance) return;
  if (instance->devices().size() < participants) return c.skip(fmt::format("there are not {} devices", participants));
  if (!instance->executes()) return c.skip("a device has COLLET_TRAIT_VIRTUAL");
  if (!instance->device().has(COLLET_TRAIT_COLLECTIVES)) return c.skip("the device has no COLLET_TRAIT_COLLECTIVES");
  const auto program =
      TestProgram::make(sample.body, {}, {.replicas = sample.replicas, .partitions = sample.partitions});
  if (!program.ok()) return c.fault(program.status());
  if (!accepts(*instance, (*program)->get())) return c.skip("the backend declines an op of the program");
  for (const bool crossed : {false, true}) {
    // Participant p runs on device devices[p].
    std::vector<uint32_t> devices(participants);
    std::iota(devices.begin(), devices.end(), 0u);
    if (crossed) std::reverse(devices.begin(), devices.end());
    const CompileResult made = compile(*instance, (*program)->get(), {.assignment = devices});
    if (declines_whole((*program)->get(), made)) return c.skip("compile declines the program as a whole");
    if (!c.check(made.status == COLLET_OK, Promise::COLLECTIVES, "compile for {} participants gave status {}: {}",
                 participants, made.status, made.message))
      return;
    if (has_layouts(*instance, **program, made.executable)) return c.skip("the executable has layouts of its own");
    for (uint64_t seed = 1; seed <= 4; ++seed) {
      std::vector<Many> many(participants);
      std::vector<std::vector<Literal>> inputs;
      std::vector<collet_launch> launches(participants);
      for (uint32_t p = 0; p < participants; ++p) {
        inputs.push_back((*program)->draw(seed * 10 + p));
        Many& one = many[p];
        for (const Literal& value : inputs[p]) {
          const auto bytes = static_cast<uint64_t>(value.byte_size());
          one.buffers.push_back(instance->alloc(bytes, devices[p]));
          if (!one.buffers.back() || !instance->write(one.buffers.back(), 0, value.bytes(), bytes)) return;
          one.arguments.push_back(whole(one.buffers.back(), bytes));
        }
        for (const hlo::Shape& shape : (*program)->results()) {
          const auto bytes = static_cast<uint64_t>(shape.byte_size());
          one.buffers.push_back(instance->alloc(bytes, devices[p]));
          if (!one.buffers.back() || !instance->write(one.buffers.back(), Bytes(bytes, 0xff))) return;
          one.results.push_back(whole(one.buffers.back(), bytes));
        }
        collet_launch& launch = launches[p];
        launch.device = devices[p];
        launch.participant = p;
        launch.arguments = one.arguments.data();
        launch.results = one.results.data();
        launch.argument_count = static_cast<uint32_t>(one.arguments.size());
        launch.result_count = static_cast<uint32_t>(one.results.size());
        if (made.executable.workspace_bytes > 0) {
          const uint64_t alignment = std::max(made.executable.workspace_alignment, instance->device().alignment());
          one.buffers.push_back(instance->alloc(made.executable.workspace_bytes, devices[p], alignment));
          if (!one.buffers.back()) return;
          launch.workspace = whole(one.buffers.back(), made.executable.workspace_bytes);
        }
      }
      // Launches may be in any order: the field participant says to which participant a launch belongs.
      if (seed % 2 == 0) std::reverse(launches.begin(), launches.end());
      std::string message;
      const collet_status status = checked_call(
          c, "execute",
          [&](collet_error* error) {
            return instance->table().execute(made.executable.handle(), launches.data(), participants, seed, error);
          },
          &message);
      const std::string what =
          fmt::format("{} participants{}{}", participants, crossed ? " on devices in reverse order" : "",
                      seed % 2 == 0 ? ", the last one's launch first" : "");
      if (!c.check(status == COLLET_OK, Promise::EXECUTE, "{}: execute gave status {}: {}", what, status, message))
        return;
      for (const uint32_t op : entry_ops((*program)->get()))
        c.note_use(use_of((*program)->get(), collet_op_at((*program)->get(), op)), {.ran = true});
      const auto expected = (*program)->evaluate_all(inputs, sample.partitions);
      if (!expected.ok()) return c.fault(expected.status());
      for (uint32_t p = 0; p < participants; ++p) {
        for (size_t r = 0; r < many[p].results.size(); ++r) {
          const Bytes bytes = instance->read(many[p].buffers[many[p].arguments.size() + r]);
          const Literal got = Literal::from_bytes((*program)->results()[r], bytes.data());
          const Comparison compared = compare({(*expected)[p][r], {}, {}}, got, {}, false);
          if (!c.check(compared.agrees, seed % 2 == 0 ? Promise::PARTICIPANT : Promise::COLLECTIVES,
                       "{}: result {} of participant {} is {} at {} and should be {}", what, r, p, compared.got,
                       index_text(got.shape(), compared.first), compared.expected))
            return;
        }
      }
    }
  }
}

constexpr char kSum[] = "sum {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT r = f32[] add(a, b)\n}\n\n";

std::vector<Together> make_samples() {
  std::vector<Together> all;
  const auto add = [&](const char* name, const std::string& lines, uint32_t replicas = 2, uint32_t partitions = 1) {
    all.push_back({name, std::string(kSum) + "ENTRY main {\n  x = f32[8,6] parameter(0)\n" + lines + "}\n", replicas,
                   partitions});
  };
  add("all_reduce", "  ROOT r = f32[8,6] all-reduce(x), replica_groups={{0,1}}, to_apply=sum\n");
  add("all_reduce_of_one", "  ROOT r = f32[8,6] all-reduce(x), replica_groups={{0},{1}}, to_apply=sum\n");
  add("all_reduce_of_all", "  ROOT r = f32[8,6] all-reduce(x), replica_groups={}, to_apply=sum\n");
  add("all_gather", "  ROOT r = f32[16,6] all-gather(x), replica_groups={{0,1}}, dimensions={0}\n");
  add("all_gather_turned", "  ROOT r = f32[8,12] all-gather(x), replica_groups={{1,0}}, dimensions={1}\n");
  add("reduce_scatter",
      "  ROOT r = f32[4,6] reduce-scatter(x), replica_groups={{0,1}}, dimensions={0}, to_apply=sum\n");
  add("reduce_scatter_turned",
      "  ROOT r = f32[8,3] reduce-scatter(x), replica_groups={{1,0}}, dimensions={1}, to_apply=sum\n");
  add("all_to_all", "  ROOT r = f32[8,6] all-to-all(x), replica_groups={{0,1}}, dimensions={0}\n");
  add("permute", "  ROOT r = f32[8,6] collective-permute(x), source_target_pairs={{0,1},{1,0}}\n");
  add("permute_one_way", "  ROOT r = f32[8,6] collective-permute(x), source_target_pairs={{1,0}}\n");
  add("broadcast", "  ROOT r = f32[8,6] collective-broadcast(x), replica_groups={{1,0}}\n");
  add("one_after_another", R"(  p = f32[8,6] collective-permute(x), source_target_pairs={{0,1},{1,0}}
  d = f32[8,6] subtract(x, p)
  s = f32[8,6] all-reduce(x), replica_groups={{0,1}}, to_apply=sum
  t = f32[8,6] multiply(d, s)
  g = f32[16,6] all-gather(t), replica_groups={{0,1}}, dimensions={0}
  ROOT r = (f32[16,6], f32[8,6]) tuple(g, d)
)");
  static constexpr char kId[] =
      "ENTRY main {{\n  x = u32[7] parameter(0)\n  i = u32[] {}\n  b = u32[7] "
      "broadcast(i), dimensions={{}}\n  ROOT r = u32[7] add(x, b)\n}}\n";
  all.push_back({"replica_id", fmt::format(kId, "replica-id()")});
  all.push_back({"replica_id_of_four", fmt::format(kId, "replica-id()"), 4});
  all.push_back({"partition_id_of_two_by_two", fmt::format(kId, "partition-id()"), 2, 2});
  all.push_back({"replica_id_of_two_by_two", fmt::format(kId, "replica-id()"), 2, 2});
  add("all_reduce_of_four", "  ROOT r = f32[8,6] all-reduce(x), replica_groups={{0,3},{2,1}}, to_apply=sum\n", 4);
  add("all_gather_of_four", "  ROOT r = f32[32,6] all-gather(x), replica_groups={{2,0,3,1}}, dimensions={0}\n", 4);
  add("permute_of_four", "  ROOT r = f32[8,6] collective-permute(x), source_target_pairs={{0,2},{2,3},{3,1},{1,0}}\n",
      4);
  add("all_reduce_of_two_by_two",
      "  ROOT r = f32[8,6] all-reduce(x), channel_id=1, replica_groups={{0,3},{1,2}}, use_global_device_ids=true, "
      "to_apply=sum\n",
      2, 2);
  return all;
}

}  // namespace

void add_collective_contracts(std::vector<ContractCase>& list) {
  static const std::vector<Together> all = make_samples();
  for (const Together& sample : all)
    list.push_back({"collective/" + sample.name, [&sample](Contract& c) { run(c, sample); }, sample.body});
}

}  // namespace collet::conformance
