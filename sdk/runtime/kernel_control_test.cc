// SPDX-License-Identifier: Apache-2.0
#include <collet/kernel_backend.hpp>
#include <collet/kernel_rows.hpp>

#include <gtest/gtest.h>

#include <random>

#include "hlo/eval/evaluator.h"
#include "hlo/program/write.h"
#include "hlo/text/parser.h"

// Tests the control flow that kernel_backend.hpp interprets itself: compares programs with loops, branches and calls
// with the evaluator.

namespace collet::kernel {
namespace {

using hlo::Literal;

// A device with host memory that is filled with a pattern when it is allocated. Counts the operations on it.
class CountingDevice final : public Device {
 public:
  Memory allocate(uint64_t bytes, uint64_t) override {
    auto* out = static_cast<char*>(::operator new(bytes, std::align_val_t(64)));
    std::memset(out, 0xee, bytes);
    return reinterpret_cast<Memory>(out);
  }
  void free(Memory memory) noexcept override { ::operator delete(at(memory), std::align_val_t(64)); }
  void write(Memory to, uint64_t offset, const void* from, uint64_t bytes) override {
    std::memcpy(at(to) + offset, from, bytes);
  }
  void read(Memory from, uint64_t offset, void* to, uint64_t bytes) override {
    ++reads;
    std::memcpy(to, at(from) + offset, bytes);
  }
  void copy(Memory to, uint64_t to_offset, Memory from, uint64_t from_offset, uint64_t bytes) override {
    copied += bytes;
    std::memmove(at(to) + to_offset, at(from) + from_offset, bytes);
  }
  static char* at(Memory memory) { return reinterpret_cast<char*>(memory); }
  static inline uint64_t reads = 0, copied = 0, launches = 0, fail_at = 0;
};

void* address_of(Device&, const Array& array) {
  return array.bytes == 0 ? nullptr : CountingDevice::at(array.memory) + array.offset;
}

// A backend on this device. `host_scalars`: the device has no integer kernels.
template <bool host_scalars>
Backend describe() {
  Backend backend;
  backend.name = "control";
  for (uint32_t type : {COLLET_TYPE_F32, COLLET_TYPE_S32, COLLET_TYPE_PRED}) {
    backend.types.push_back({type, COLLET_MAY_STORE | COLLET_MAY_MOVE | COLLET_MAY_COMPUTE});
  }
  Rows rows(address_of);
  rows.arithmetic<float>().compare<float>().select(types_of<float>()).reduce<float>().moves(types_of<float>());
  rows.product<float, float, float>();
  if (!host_scalars) rows.arithmetic<int32_t>().compare<int32_t>().select(types_of<int32_t>()).arithmetic<bool>();
  backend.kernels = rows.take();
  for (Kernel& row : backend.kernels) {
    row.run = [run = row.run](Device& device, const Op& op) {
      if (++CountingDevice::launches == CountingDevice::fail_at) throw Error(COLLET_INTERNAL, "a launch failed");
      run(device, op);
    };
  }
  backend.control_flow = true;
  backend.host_scalars = host_scalars;
  backend.open_device = [](uint32_t) { return std::make_unique<CountingDevice>(); };
  return backend;
}

struct Leaf {
  std::string type;
  std::vector<uint32_t> bits;
};

// An open backend, which runs programs given as HLO text.
class Control {
 public:
  explicit Control(bool host_scalars) {
    collet_host host{};
    host.struct_size = sizeof host;
    host.abi_major = COLLET_ABI_MAJOR;
    const auto enter = host_scalars ? detail::enter<describe<true>> : detail::enter<describe<false>>;
    EXPECT_EQ(enter(&host, &table, &error), COLLET_OK);
    collet_open_options options{};
    options.struct_size = sizeof options;
    collet_instance_info info{};
    info.struct_size = sizeof info;
    EXPECT_EQ(table->open(&options, &instance, &info, &error), COLLET_OK) << error.message;
    CountingDevice::fail_at = CountingDevice::launches = 0;
  }
  ~Control() { table->close(instance); }

  // Runs a program as a whole. `shared`: results use the buffers of the arguments that they may alias. `by_value`:
  // scalars are passed by value, not in buffers.
  std::vector<std::vector<uint32_t>> run(const hlo::Module& module, const std::vector<Literal>& inputs, bool shared,
                                         bool by_value) {
    hlo::ProgramOptions how;
    how.scalars_by_value = by_value;
    const auto program = hlo::write_program(module, how);
    EXPECT_TRUE(program.ok()) << program.status().to_string();
    const collet_program* p = program->get();
    const collet_region* entry = collet_region_at(p, 0);
    for (uint32_t i = 0; i < entry->ops.count; ++i) {
      const uint32_t op = entry->ops.first + i;
      collet_verdict verdict{};
      EXPECT_EQ(table->supports(instance, 0, p, &op, 1, &verdict, &error), COLLET_OK) << error.message;
      EXPECT_EQ(verdict.answer, uint32_t{COLLET_ACCEPT})
          << collet_op_name(collet_op_at(p, op)->opcode) << ": " << verdict.reason;
    }
    collet_compile_options options{};
    options.struct_size = sizeof options;
    const uint32_t assignment = 0;
    options.assignment = &assignment;
    options.participants = 1;
    options.intermediate_check = 1;
    collet_executable_info info{};
    info.struct_size = sizeof info;
    collet_backend_executable* executable = nullptr;
    status = table->compile(instance, p, &options, &executable, &info, nullptr, &error);
    EXPECT_EQ(status, COLLET_OK) << error.message;
    if (status != COLLET_OK) return {};
    std::vector<collet_argument> arguments(entry->arguments.count), results(entry->results.count);
    std::vector<collet_backend_buffer*> buffers;
    const auto make = [&](uint64_t bytes) {
      collet_backend_buffer* out = nullptr;
      EXPECT_EQ(table->alloc(instance, 0, 0, bytes, 64, &out, nullptr, &error), COLLET_OK);
      buffers.push_back(out);
      return out;
    };
    for (uint32_t i = 0; i < arguments.size(); ++i) {
      const uint32_t value = entry->arguments.first + i;
      arguments[i].bytes = collet_value_type(p, value)->bytes;
      if ((collet_value_at(p, value)->flags & COLLET_VALUE_SCALAR) != 0) {
        arguments[i].flags = COLLET_ARG_IMMEDIATE;
        std::memcpy(arguments[i].immediate, inputs[i].bytes(), arguments[i].bytes);
        continue;
      }
      arguments[i].buffer = make(arguments[i].bytes);
      move(arguments[i], const_cast<uint8_t*>(inputs[i].bytes()), true);
    }
    for (uint32_t r = 0; r < results.size(); ++r) {
      results[r].bytes = collet_value_type(p, collet_ref_at(p, entry->results.first + r))->bytes;
      for (uint32_t i = 0; shared && i < p->aliases.count; ++i) {
        const collet_alias* alias = collet_alias_at(p, i);
        if (alias->result == r) results[r].buffer = arguments[alias->argument].buffer;
      }
      if (!results[r].buffer) results[r].buffer = make(results[r].bytes);
    }
    collet_launch launch{};
    launch.arguments = arguments.data();
    launch.argument_count = static_cast<uint32_t>(arguments.size());
    launch.results = results.data();
    launch.result_count = static_cast<uint32_t>(results.size());
    if (info.workspace_bytes) launch.workspace.buffer = make(info.workspace_bytes);
    launch.workspace.bytes = info.workspace_bytes;
    CountingDevice::reads = CountingDevice::copied = CountingDevice::launches = 0;
    status = table->execute(executable, &launch, 1, 1, &error);
    reads = CountingDevice::reads;
    copied = CountingDevice::copied;
    std::vector<std::vector<uint32_t>> out;
    for (const collet_argument& result : results) {
      out.emplace_back((result.bytes + 3) / 4);
      move(result, out.back().data(), false);
    }
    const auto* artifacts = static_cast<const collet_artifacts_table*>(table->query(instance, "artifacts", 1));
    const char* name = nullptr;
    const void* text = nullptr;
    uint64_t size = 0;
    EXPECT_EQ(artifacts->get(executable, 0, &name, &text, &size, &error), COLLET_OK);
    plan.assign(static_cast<const char*>(text), size);
    for (collet_backend_buffer* one : buffers) table->free(instance, one);
    table->release(executable);
    return out;
  }

  // Runs the program here and by the evaluator, and expects equal results.
  void expect_agreement(const std::string& text, const std::vector<Literal>& inputs, bool shared, bool by_value) {
    const auto module = hlo::parse_module(text);
    ASSERT_TRUE(module.ok()) << module.status().to_string() << text;
    const auto got = run(**module, inputs, shared, by_value);
    ASSERT_EQ(status, COLLET_OK) << error.message;
    const auto wanted = hlo::Evaluator(**module).run(inputs);
    ASSERT_TRUE(wanted.ok()) << wanted.status().to_string();
    const std::vector<Literal> leaves = hlo::flatten(*wanted);
    ASSERT_EQ(got.size(), leaves.size());
    for (size_t r = 0; r < leaves.size(); ++r) {
      EXPECT_EQ(std::memcmp(got[r].data(), leaves[r].bytes(), leaves[r].type() == hlo::Type::F32 ? 16 : 4), 0)
          << "result " << r << " of\n"
          << text << "\n"
          << plan;
    }
  }

  const collet_backend* table = nullptr;
  collet_backend_instance* instance = nullptr;
  collet_error error{};
  collet_status status = COLLET_OK;
  uint64_t reads = 0, copied = 0;
  std::string plan;

 private:
  void move(const collet_argument& at, void* host, bool up) {
    const collet_place device{at.buffer, nullptr, 0}, here{nullptr, host, 0};
    const collet_copy_region region{up ? here : device, up ? device : here, at.bytes};
    EXPECT_EQ(table->copy(instance, &region, 1, nullptr, &error), COLLET_OK) << error.message;
  }
};

// Generates random programs: vectors, integers and predicates that loops, branches and calls pass to each other in
// every way.
class Grower {
 public:
  explicit Grower(uint64_t seed) : random_(seed) {}

  std::string module() {
    const std::vector<std::string> types = {kVector, kVector, kVector, kNumber, kNumber, kVector};
    Body body;
    for (size_t i = 0; i < types.size(); ++i) {
      body.define(types[i], body.line(types[i] + " parameter(" + std::to_string(i) + ")", fresh()));
    }
    grow(&body, 3, 2 + below(4));
    std::string results, shapes, aliases;
    for (size_t r = 0; r < types.size(); ++r) {
      results += (r ? ", " : "") + pick(body, types[r]);
      shapes += (r ? ", " : "") + types[r];
    }
    // Some results may alias arguments, not always those at the same index.
    std::vector<size_t> vectors = {0, 1, 2, 5};
    std::shuffle(vectors.begin(), vectors.end(), random_);
    for (size_t i = 0; i < below(5); ++i) {
      const size_t result = std::vector<size_t>{0, 1, 2, 5}[i];
      aliases += (aliases.empty() ? "" : ", ") + ("{" + std::to_string(result)) + "}: (" + std::to_string(vectors[i]) +
                 ", {}, may-alias)";
    }
    return "HloModule grown, input_output_alias={ " + aliases + " }\n" + computations_ + "ENTRY e {\n" + body.text +
           "  ROOT r = (" + shapes + ") tuple(" + results + ")\n}\n";
  }

 private:
  static constexpr const char* kVector = "f32[4]";
  static constexpr const char* kNumber = "s32[]";

  struct Body {
    std::string text;
    std::map<std::string, std::vector<std::string>> values;
    std::string line(const std::string& what, const std::string& name) {
      text += "  " + name + " = " + what + "\n";
      return name;
    }
    void define(const std::string& type, const std::string& name) { values[type].push_back(name); }
  };

  size_t below(size_t n) { return random_() % n; }
  std::string fresh() { return "v" + std::to_string(next_++); }

  // Prefers recent values, because chains of ops are candidates for in-place updates.
  std::string pick(Body& body, const std::string& type) {
    std::vector<std::string>& all = body.values[type];
    if (all.empty() || below(12) == 0) {
      const std::string number = std::to_string(below(5)), name = fresh();
      const bool vector = type == kVector;
      define(body, type, type + " constant(" + (vector ? "{1, 2, " + number + ", -1}" : number) + ")", name);
      return name;
    }
    return below(2) ? all.back() : all[below(all.size())];
  }
  void define(Body& body, const std::string& type, const std::string& what, const std::string& name) {
    body.define(type, body.line(what, name));
  }

  std::string predicate(Body& body) {
    if (below(2))
      return body.line("pred[] compare(" + pick(body, kNumber) + ", " + pick(body, kNumber) + "), direction=LT",
                       fresh());
    const std::string one = body.line("f32[1] slice(" + pick(body, kVector) + "), slice={[1:2]}", fresh());
    const std::string scalar = body.line("f32[] reshape(" + one + ")", fresh());
    const std::string zero = body.line("f32[] constant(0.5)", fresh());
    return body.line("pred[] compare(" + scalar + ", " + zero + "), direction=GT", fresh());
  }

  void grow(Body* body, int depth, size_t steps) {
    for (size_t i = 0; i < steps; ++i) {
      switch (below(depth > 0 ? 13 : 8)) {
        case 0:
        case 1: {
          const char* const ops[] = {"add", "subtract", "maximum"};
          const char* op = ops[below(3)];
          const std::string x = pick(*body, kVector), y = pick(*body, kVector);
          define(*body, kVector, std::string(kVector) + " " + op + "(" + x + ", " + y + ")", fresh());
          break;
        }
        case 2:
        case 3: {
          const std::string from = pick(*body, kVector), at = pick(*body, kNumber), where = pick(*body, kNumber);
          const std::string slice =
              body->line("f32[2] dynamic-slice(" + from + ", " + at + "), dynamic_slice_sizes={2}", fresh());
          const std::string to = pick(*body, kVector);
          define(*body, kVector,
                 std::string(kVector) + " dynamic-update-slice(" + to + ", " + slice + ", " + where + ")", fresh());
          break;
        }
        case 4:
          define(*body, kVector, std::string(kVector) + " reverse(" + pick(*body, kVector) + "), dimensions={0}",
                 fresh());
          break;
        case 5:
        case 6: {
          const char* const ops[] = {"add", "and", "subtract", "minimum"};
          const char* op = ops[below(4)];
          const std::string x = pick(*body, kNumber), y = pick(*body, kNumber);
          define(*body, kNumber, std::string(kNumber) + " " + op + "(" + x + ", " + y + ")", fresh());
          break;
        }
        case 7: {
          const std::string p = predicate(*body), x = pick(*body, kNumber), y = pick(*body, kNumber);
          define(*body, kNumber, std::string(kNumber) + " select(" + p + ", " + x + ", " + y + ")", fresh());
          break;
        }
        case 8:
        case 9:
        case 10:
          add_loop(body, depth - 1);
          break;
        case 11:
          add_branches(body, depth - 1);
          break;
        default:
          add_call(body, depth - 1);
      }
    }
  }

  std::vector<std::string> some_types() {
    std::vector<std::string> out;
    for (size_t i = 0, n = 1 + below(4); i < n; ++i) out.push_back(below(3) ? kVector : kNumber);
    return out;
  }
  static std::string joined(const std::vector<std::string>& all) {
    std::string out;
    for (const std::string& one : all) out += (out.empty() ? "" : ", ") + one;
    return out;
  }
  static std::string tuple_of(const std::vector<std::string>& types) { return "(" + joined(types) + ")"; }
  std::vector<std::string> picks(Body& body, const std::vector<std::string>& types) {
    std::vector<std::string> out;
    for (const std::string& type : types) out.push_back(pick(body, type));
    return out;
  }
  void take_apart(Body* body, const std::string& tuple, const std::vector<std::string>& types) {
    for (size_t i = 0; i < types.size(); ++i) {
      define(*body, types[i], types[i] + " get-tuple-element(" + tuple + "), index=" + std::to_string(i), fresh());
    }
  }
  // Generates a computation from one tuple to another.
  std::string computation(const std::vector<std::string>& from, const std::vector<std::string>& to, int depth) {
    Body body;
    const std::string p = body.line(tuple_of(from) + " parameter(0)", fresh());
    take_apart(&body, p, from);
    grow(&body, depth, below(4));
    const std::string name = "c" + fresh(), values = joined(picks(body, to));
    computations_ +=
        name + " {\n" + body.text + "  ROOT r" + name + " = " + tuple_of(to) + " tuple(" + values + ")\n}\n";
    return name;
  }

  void add_loop(Body* body, int depth) {
    std::vector<std::string> types = {kNumber, kNumber};
    for (const std::string& type : some_types()) types.push_back(type);
    // The loop body increments the counter, passes the limit on, and does anything with the other values.
    Body inner;
    const std::string p = inner.line(tuple_of(types) + " parameter(0)", fresh());
    take_apart(&inner, p, types);
    const std::string counter = inner.values[kNumber][0], limit = inner.values[kNumber][1];
    grow(&inner, depth, below(4));
    const std::string one = inner.line("s32[] constant(1)", fresh());
    const std::string counted = inner.line("s32[] add(" + counter + ", " + one + ")", fresh());
    std::vector<std::string> results = {counted, limit};
    const std::vector<std::string> rest(types.begin() + 2, types.end());
    for (const std::string& value : picks(inner, rest)) results.push_back(value);
    const std::string name = "b" + fresh();
    computations_ += name + " {\n" + inner.text + "  ROOT r" + name + " = " + tuple_of(types) + " tuple(" +
                     joined(results) + ")\n}\n";
    const std::string condition = "t" + fresh();
    computations_ += condition + " {\n  s" + condition + " = " + tuple_of(types) + " parameter(0)\n  i" + condition +
                     " = s32[] get-tuple-element(s" + condition + "), index=0\n  n" + condition +
                     " = s32[] get-tuple-element(s" + condition + "), index=1\n  ROOT r" + condition +
                     " = pred[] compare(i" + condition + ", n" + condition + "), direction=LT\n}\n";
    std::vector<std::string> init = picks(*body, types);
    init[0] = body->line("s32[] constant(0)", fresh());
    const std::string three = body->line("s32[] constant(3)", fresh());
    init[1] = below(2) ? body->line("s32[] and(" + init[1] + ", " + three + ")", fresh()) : three;
    const std::string tuple = body->line(tuple_of(types) + " tuple(" + joined(init) + ")", fresh());
    const std::string loop =
        body->line(tuple_of(types) + " while(" + tuple + "), condition=" + condition + ", body=" + name, fresh());
    take_apart(body, loop, types);
  }

  void add_branches(Body* body, int depth) {
    const std::vector<std::string> from = some_types(), to = some_types();
    const bool by_index = below(2) != 0;
    std::vector<std::string> names, operands;
    for (size_t b = 0; b < (by_index ? 3u : 2u); ++b) {
      names.push_back(computation(from, to, depth));
      operands.push_back(body->line(tuple_of(from) + " tuple(" + joined(picks(*body, from)) + ")", fresh()));
    }
    const std::string chosen = by_index ? pick(*body, kNumber) : predicate(*body);
    const std::string all = by_index ? "branch_computations={" + joined(names) + "}"
                                     : "true_computation=" + names[0] + ", false_computation=" + names[1];
    const std::string out =
        body->line(tuple_of(to) + " conditional(" + chosen + ", " + joined(operands) + "), " + all, fresh());
    take_apart(body, out, to);
  }

  void add_call(Body* body, int depth) {
    const std::vector<std::string> from = some_types(), to = some_types();
    const std::string name = computation(from, to, depth);
    const std::string operand = body->line(tuple_of(from) + " tuple(" + joined(picks(*body, from)) + ")", fresh());
    take_apart(body, body->line(tuple_of(to) + " call(" + operand + "), to_apply=" + name, fresh()), to);
  }

  std::mt19937_64 random_;
  std::string computations_;
  int next_ = 0;
};

std::vector<Literal> inputs_of(uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<Literal> out;
  for (const bool vector : {true, true, true, false, false, true}) {
    float floats[4];
    const auto number = static_cast<int32_t>(random() % 7) - 2;
    for (float& one : floats) one = static_cast<float>(static_cast<int>(random() % 9) - 4) / 2;
    out.push_back(vector ? Literal::from_bytes(hlo::Shape::array(hlo::Type::F32, {4}), floats)
                         : Literal::from_bytes(hlo::Shape::scalar(hlo::Type::S32), &number));
  }
  return out;
}

TEST(KernelControl, GrownProgramsAgreeWithTheEvaluator) {
  for (const bool host_scalars : {false, true}) {
    Control control(host_scalars);
    for (uint64_t seed = 0; seed < 400 && !::testing::Test::HasFailure(); ++seed) {
      SCOPED_TRACE("seed " + std::to_string(seed));
      const std::string text = Grower(seed).module();
      control.expect_agreement(text, inputs_of(seed), seed % 2 == 0, seed % 3 == 0);
    }
  }
}

// Returns a loop over a counter and a vector of 1024 numbers, which `body` updates; the limit is an argument.
std::string counting_loop(const std::string& body,
                          const std::string& condition = "ROOT r = pred[] compare(i, n), direction=LT") {
  return R"(HloModule loop, input_output_alias={ {0}: (0, {}, may-alias) }
condition {
  s = (f32[1024], s32[], s32[]) parameter(0)
  x = f32[1024] get-tuple-element(s), index=0
  i = s32[] get-tuple-element(s), index=1
  n = s32[] get-tuple-element(s), index=2
  )" + condition +
         R"(
}
body {
  s = (f32[1024], s32[], s32[]) parameter(0)
  x = f32[1024] get-tuple-element(s), index=0
  i = s32[] get-tuple-element(s), index=1
  n = s32[] get-tuple-element(s), index=2
  one = s32[] constant(1)
  j = s32[] add(i, one)
)" + body +
         R"(
  ROOT r = (f32[1024], s32[], s32[]) tuple(y, j, n)
}
ENTRY e {
  x = f32[1024] parameter(0)
  n = s32[] parameter(1)
  zero = s32[] constant(0)
  t = (f32[1024], s32[], s32[]) tuple(x, zero, n)
  w = (f32[1024], s32[], s32[]) while(t), condition=condition, body=body
  y = f32[1024] get-tuple-element(w), index=0
  i = s32[] get-tuple-element(w), index=1
  ROOT r = (f32[1024], s32[]) tuple(y, i)
}
)";
}

std::vector<Literal> numbers(int32_t trips, float first = 0) {
  std::vector<float> x(1024, first);
  return {Literal::from_bytes(hlo::Shape::array(hlo::Type::F32, {1024}), x.data()),
          Literal::from_bytes(hlo::Shape::scalar(hlo::Type::S32), &trips)};
}

constexpr const char* kUpdate =
    "  u = f32[2] dynamic-slice(x, j), dynamic_slice_sizes={2}\n  y = f32[1024] dynamic-update-slice(x, u, i)";
constexpr const char* kReverse =
    "  v = f32[1024] reverse(x), dimensions={0}\n  z = f32[1024] reverse(v), dimensions={0}\n"
    "  o = f32[] constant(1)\n  b = f32[1024] broadcast(o), dimensions={}\n  y = f32[1024] add(z, b)";

TEST(KernelControl, LoopsCopyNothingAndAskNothing) {
  for (const bool host_scalars : {false, true}) {
    Control control(host_scalars);
    for (const char* body : {kUpdate, kReverse}) {
      for (const int32_t trips : {0, 1, 2, 999}) {
        control.expect_agreement(counting_loop(body), numbers(trips), true, true);
        EXPECT_EQ(control.reads, 0u) << control.plan;
        // Allowed copies: the counter and, after an odd number of iterations that cannot run in place, the result.
        EXPECT_LE(control.copied, 4096u + 16) << control.plan;
      }
    }
    // If the argument is not donated, it is copied once before the loop; the rest is as before.
    control.expect_agreement(counting_loop(kUpdate), numbers(100), false, true);
    EXPECT_LE(control.copied, 4096u + 16) << control.plan;
    const auto module = hlo::parse_module(counting_loop(kUpdate));
    const auto out = control.run(**module, numbers(100'000), true, true);
    ASSERT_EQ(control.status, COLLET_OK) << control.error.message;
    EXPECT_EQ(out[1][0], 100'000u);
    EXPECT_EQ(control.reads, 0u);
  }
}

TEST(KernelControl, ConditionsOfDataAreReadOnceInATurn) {
  Control control(true);
  const std::string text =
      counting_loop(kReverse,
                    "at = f32[1] slice(x), slice={[0:1]}\n  first = f32[] reshape(at)\n  bound = f32[] constant(8)\n"
                    "  ROOT r = pred[] compare(first, bound), direction=LT");
  control.expect_agreement(text, numbers(0, 1), true, false);
  EXPECT_EQ(control.reads, 8u);  // numbers 1 to 8
}

TEST(KernelControl, FailureInALoopSaysWhetherArgumentsAreLost) {
  Control control(false);
  const auto module = hlo::parse_module(counting_loop(kUpdate));
  for (const bool shared : {true, false}) {
    CountingDevice::fail_at = 50;
    control.run(**module, numbers(100), shared, true);
    EXPECT_EQ(control.status, shared ? COLLET_DATA_LOSS : COLLET_INTERNAL) << control.error.message;
  }
  CountingDevice::fail_at = 0;
}

TEST(KernelControl, AnUnknownOpInARegionIsNamed) {
  Control control(false);
  const auto module = hlo::parse_module(
      "HloModule m\ny { x = f32[2] parameter(0)\n ROOT r = f32[2] cosine(x) }\n"
      "n { x = f32[2] parameter(0)\n ROOT r = f32[2] negate(x) }\n"
      "ENTRY e { p = pred[] parameter(0)\n x = f32[2] parameter(1)\n"
      " ROOT c = f32[2] conditional(p, x, x), true_computation=y, false_computation=n }\n");
  ASSERT_TRUE(module.ok()) << module.status().to_string();
  const auto program = hlo::write_program(**module);
  const uint32_t op = 0;
  collet_verdict verdict{};
  ASSERT_EQ(control.table->supports(control.instance, 0, program->get(), &op, 1, &verdict, &control.error), COLLET_OK);
  EXPECT_EQ(verdict.answer, uint32_t{COLLET_DECLINE});
  EXPECT_STREQ(verdict.reason, "cosine of the conditional: no kernel");
}

}  // namespace
}  // namespace collet::kernel
