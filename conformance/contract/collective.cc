// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>

#include "conformance/contract/program.h"
#include "conformance/contract/queues.h"
#include "conformance/contract/samples.h"

// Contract cases with programs of two and four participants, which are launched at once on as many devices.

namespace collet::conformance {
namespace {

using hlo::Literal;

// A program of several participants.
struct Together {
  std::string name, body;
  uint32_t replicas = 2, partitions = 1;
  double scale = 1;  ///< factor of the numbers that are drawn
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
        for (Literal& value : inputs[p])
          for (int64_t i = 0; sample.scale != 1 && i < value.element_count(); ++i)
            hlo::is_integer(value.type()) ? value.set_int(i, value.as_int(i) * static_cast<int64_t>(sample.scale))
                                          : value.set_double(i, value.as_double(i) * sample.scale);
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

// Runs an all-reduce whose launches each wait for an upload on a queue of their own, which is late for another one of them in each round.
void on_queues(Contract& c) {
  constexpr uint32_t kParticipants = 2;
  constexpr uint64_t kMuch = 1 << 22, kElements = 48;
  if (!c.plugin().computes()) return c.skip("the backend runs no ops");
  if (!c.holds(Promise::QUEUED_TOGETHER)) return c.skip("the backend's version of the interface does not promise it");
  const Setting s = start_queues(c, kParticipants);
  if (!s) return;
  Instance& instance = *s.instance;
  if (instance.devices().size() < kParticipants) return c.skip("there are not two devices");
  if (!instance.device().has(COLLET_TRAIT_COLLECTIVES)) return c.skip("the device has no COLLET_TRAIT_COLLECTIVES");
  const auto program = TestProgram::make(
      "sum {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT r = f32[] add(a, b)\n}\n\n"
      "ENTRY main {\n  x = f32[48] parameter(0)\n  ROOT r = f32[48] all-reduce(x), replica_groups={{0,1}}, "
      "to_apply=sum\n}\n",
      {}, {.replicas = kParticipants});
  if (!program.ok()) return c.fault(program.status());
  if (!accepts(instance, (*program)->get())) return c.skip("the backend declines an op of the program");
  const CompileResult made = compile(instance, (*program)->get(), {.assignment = {0, 1}});
  if (declines_whole((*program)->get(), made)) return c.skip("compile declines the program as a whole");
  if (!c.check(made.status == COLLET_OK, Promise::COLLECTIVES, "compile gave status {}: {}", made.status, made.message))
    return;
  if (has_layouts(instance, **program, made.executable)) return c.skip("the executable has layouts of its own");
  struct One {
    Queue upload, compute;
    Buffer much, argument, result, workspace;
    Bytes host;
    collet_argument in{}, out{};
    collet_point wait{}, signal{};
    collet_sync sync{};
  };
  std::vector<One> all(kParticipants);
  const Bytes much = pattern(kMuch, 5);
  for (uint32_t p = 0; p < kParticipants; ++p) {
    One& one = all[p];
    one.upload = s.create(COLLET_QUEUE_UPLOAD, p);
    one.compute = s.create(COLLET_QUEUE_COMPUTE, p);
    one.much = instance.alloc(kMuch, p);
    one.argument = instance.alloc(kElements * 4, p);
    one.result = instance.alloc(kElements * 4, p);
    if (!one.upload || !one.compute || !one.much || !one.argument || !one.result) return;
    if (made.executable.workspace_bytes == 0) continue;
    one.workspace = instance.alloc(made.executable.workspace_bytes, p,
                                   std::max(made.executable.workspace_alignment, instance.device().alignment()));
    if (!one.workspace) return;
  }
  for (uint64_t round = 0; round < 4; ++round) {
    std::vector<std::vector<Literal>> inputs;
    std::vector<collet_launch> launches(kParticipants);
    for (uint32_t p = 0; p < kParticipants; ++p) {
      One& one = all[p];
      inputs.push_back((*program)->draw(round * 10 + p));
      one.host.assign(inputs[p][0].bytes(), inputs[p][0].bytes() + inputs[p][0].byte_size());
      if (!instance.write(one.argument, Bytes(kElements * 4, 0xff)) ||
          !instance.write(one.result, Bytes(kElements * 4, 0xff)))
        return;
      for (int i = 0; p == round % kParticipants && i < 24; ++i)
        if (!s.copy(one.upload, {region(at_host(much.data()), at(one.much), kMuch)})) return;
      if (!s.copy(one.upload, {region(at_host(one.host.data()), at(one.argument), kElements * 4)})) return;
      one.in = whole(one.argument, kElements * 4);
      one.out = whole(one.result, kElements * 4);
      one.wait = one.upload.point();
      one.signal = one.compute.next();
      one.sync = {one.compute.handle(), &one.wait, &one.signal, 1, 1};
      collet_launch& launch = launches[p];
      launch.device = launch.participant = p;
      launch.arguments = &one.in;
      launch.results = &one.out;
      launch.argument_count = launch.result_count = 1;
      if (one.workspace) launch.workspace = whole(one.workspace, made.executable.workspace_bytes);
      launch.sync = &one.sync;
    }
    const collet_status status = checked_call(c, "execute on queues", [&](collet_error* error) {
      return instance.table().execute(made.executable.handle(), launches.data(), kParticipants, round + 1, error);
    });
    if (!c.check(status == COLLET_OK, Promise::QUEUED_TOGETHER, "execute on queues gave status {}", status)) {
      for (One& one : all) one.compute.take_back();
      return;
    }
    for (One& one : all)
      if (!s.finish(one.compute) || !s.finish(one.upload)) return;
    const auto expected = (*program)->evaluate_all(inputs, 1);
    if (!expected.ok()) return c.fault(expected.status());
    for (uint32_t p = 0; p < kParticipants; ++p) {
      const Bytes bytes = instance.read(all[p].result);
      const Literal got = Literal::from_bytes((*program)->results()[0], bytes.data());
      const Comparison compared = compare({(*expected)[p][0], {}, {}}, got, {}, false);
      if (!c.check(compared.agrees, Promise::QUEUED_TOGETHER,
                   "launches of two participants, each after an upload: the result of participant {} is {} at {} and "
                   "should be {}",
                   p, compared.got, index_text(got.shape(), compared.first), compared.expected))
        return;
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
  // Other types and bodies, one element, more than 16 bits can count, and numbers that need all bits of their type.
  const auto add_reduce = [&](const char* type, const char* op, int elements, double scale = 1) {
    for (const bool scatters : {false, true}) {
      const int all_elements = scatters ? 2 * elements : elements;
      const std::string how = scatters ? "reduce-scatter" : "all-reduce";
      all.push_back(
          {fmt::format("{}_{}_{}_{}{}", scatters ? "reduce_scatter" : "all_reduce", op, type, elements,
                       scale != 1 ? "_of_all_bits" : ""),
           fmt::format(
               "combine {{\n  a = {0}[] parameter(0)\n  b = {0}[] parameter(1)\n  ROOT r = {0}[] {1}(a, b)\n}}\n\n"
               "ENTRY main {{\n  x = {0}[{2}] parameter(0)\n  ROOT r = {0}[{3}] {4}(x), "
               "replica_groups={{{{0,1}}}}{5}, to_apply=combine\n}}\n",
               type, op, all_elements, elements, how, scatters ? ", dimensions={0}" : ""),
           2, 1, scale});
    }
  };
  for (const char* type : {"f32", "bf16", "s32", "f64"})
    for (const char* op : {"add", "multiply", "maximum", "minimum"})
      if (std::string_view(type) != "f32" || std::string_view(op) != "add") add_reduce(type, op, 48);
  for (const char* op : {"and", "or"}) add_reduce("pred", op, 48), add_reduce("s32", op, 48);
  for (const char* type : {"f32", "bf16", "s32"})
    for (const int elements : {1, 70001}) add_reduce(type, "add", elements);
  // A sum of two numbers of up to 2^3 is exact: they become numbers of 20, 49 and 27 bits.
  add_reduce("f32", "add", 48, 0x1p19 + 1);
  add_reduce("f64", "add", 48, 0x1p48 + 1);
  add_reduce("s32", "add", 48, 0x1p26 + 1);
  add("all_to_all_of_two",
      "  y = f32[8,6] negate(x)\n  ROOT r = (f32[8,6], f32[8,6]) all-to-all(x, y), replica_groups={{0,1}}\n");
  add("all_to_all_of_two_turned",
      "  y = f32[8,6] negate(x)\n  ROOT r = (f32[8,6], f32[8,6]) all-to-all(x, y), replica_groups={{1,0}}\n");
  for (const auto& [type, elements] : {std::pair("bf16", 70001), std::pair("pred", 48), std::pair("s8", 1)}) {
    all.push_back({fmt::format("all_gather_{}_{}", type, elements),
                   fmt::format("ENTRY main {{\n  x = {0}[{1}] parameter(0)\n  ROOT r = {0}[{2}] all-gather(x), "
                               "replica_groups={{{{0,1}}}}, dimensions={{0}}\n}}\n",
                               type, elements, 2 * elements)});
    all.push_back({fmt::format("permute_{}_{}", type, elements),
                   fmt::format("ENTRY main {{\n  x = {0}[{1}] parameter(0)\n  ROOT r = {0}[{1}] collective-permute(x), "
                               "source_target_pairs={{{{0,1}},{{1,0}}}}\n}}\n",
                               type, elements)});
  }
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
  list.push_back({"collective/on_queues", on_queues});
}

}  // namespace collet::conformance
