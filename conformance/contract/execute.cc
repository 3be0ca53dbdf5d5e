// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <atomic>
#include <chrono>
#include <numeric>
#include <random>
#include <thread>

#include "conformance/contract/differences.h"
#include "conformance/contract/program.h"
#include "conformance/contract/samples.h"

namespace collet::conformance {
namespace {

// The compiled sample and an instance that can execute it; empty if the case has ended.
struct Start {
  std::unique_ptr<Instance> instance;
  PreparedProgram ready;
  explicit operator bool() const { return static_cast<bool>(ready); }
};

std::unique_ptr<Instance> open_to_execute(Contract& c, uint32_t devices = 0) {
  if (!c.plugin().computes()) {
    c.skip("the backend runs no ops");
    return nullptr;
  }
  auto instance = Instance::open(c, devices);
  if (instance && !instance->executes()) {
    c.skip("a device has COLLET_TRAIT_VIRTUAL");
    return nullptr;
  }
  return instance;
}

Start start(Contract& c, const std::string& body, const std::string& aliases = {}) {
  Start out{open_to_execute(c), {}};
  if (out.instance) out.ready = prepare(*out.instance, body, aliases);
  return out;
}

Start start_with_sum(Contract& c, uint32_t devices = 0) {
  Start out{open_to_execute(c, devices), {}};
  if (!out.instance) return out;
  const std::string body = accepted_sum(*out.instance);
  if (!body.empty()) out.ready = prepare(*out.instance, body);
  return out;
}

// Runs a sample with garbage in results and workspace, with guard bytes around everything, with other data, and with
// the first data again.
void run_sample(Contract& c, const Sample& sample) {
  const Start s = start(c, sample.body);
  if (!s) return;
  GuardedLaunch apart(*s.instance, *s.ready.program, s.ready.executable, {});
  for (const uint64_t seed : {1u, 2u, 3u, 1u})
    if (!apart.run(seed, "apart", sample.bound)) return;
  GuardedLaunch together(*s.instance, *s.ready.program, s.ready.executable, {.one_buffer = true});
  for (const uint64_t seed : {4u, 5u})
    if (!together.run(seed, "all in one buffer", sample.bound)) return;
  GuardedLaunch tight(*s.instance, *s.ready.program, s.ready.executable, {.tight = true});
  for (const uint64_t seed : {6u, 7u})
    if (!tight.run(seed, "in buffers of just the size", sample.bound)) return;
  GuardedLaunch donated(*s.instance, *s.ready.program, s.ready.executable, {.donate_all = true});
  for (const uint64_t seed : {8u, 9u})
    if (!donated.run(seed, "with donated arguments that no result takes over", sample.bound)) return;
}

// Returns texts of input_output_alias: each pair of a result and an argument of equal shape alone, and all assignments
// that give each result an argument.
std::vector<std::string> alias_lists(const TestProgram& program) {
  const auto& results = program.results();
  const auto& inputs = program.inputs();
  const auto pair = [&](size_t result, size_t argument, const char* kind) {
    const std::string index = results.size() == 1 ? "" : std::to_string(result);
    return fmt::format("{{{}}}: ({}, {{}}, {})", index, argument, kind);
  };
  const auto fits = [&](size_t result, size_t argument) {
    return results[result].same_without_layout(inputs[argument]) && results[result].byte_size() > 0;
  };
  std::vector<std::string> out;
  for (size_t r = 0; r < results.size(); ++r) {
    for (size_t a = 0; a < inputs.size(); ++a) {
      if (!fits(r, a)) continue;
      out.push_back(pair(r, a, "may-alias"));
      if (a == 0) out.push_back(pair(r, a, "must-alias"));
    }
  }
  for (size_t r = 0; r < results.size(); ++r) {
    for (size_t q = r + 1; q < results.size(); ++q) {
      for (size_t a = 0; a < inputs.size(); ++a) {
        for (size_t b = 0; b < inputs.size(); ++b)
          if (a != b && fits(r, a) && fits(q, b))
            out.push_back(pair(r, a, "may-alias") + ", " + pair(q, b, "may-alias"));
      }
    }
  }
  return out;
}

void run_aliased(Contract& c, const Sample& sample) {
  const auto instance = open_to_execute(c);
  if (!instance) return;
  const auto plain = TestProgram::make(sample.body);
  if (!plain.ok()) return c.fault(plain.status());
  const std::vector<std::string> lists = alias_lists(**plain);
  if (lists.empty()) return c.skip("no result has the shape of an argument");
  for (const std::string& aliases : lists) {
    const PreparedProgram ready = prepare(*instance, sample.body, aliases);
    if (!ready) return;
    GuardedLaunch taken(*instance, *ready.program, ready.executable, {.take_aliases = true});
    for (const uint64_t seed : {1u, 2u})
      if (!taken.run(seed, "aliases " + aliases + " taken", sample.bound)) return;
    GuardedLaunch together(*instance, *ready.program, ready.executable, {.take_aliases = true, .one_buffer = true});
    if (!together.run(3, "aliases " + aliases + " taken, in one buffer", sample.bound)) return;
    if (aliases.find("must") != std::string::npos) continue;
    GuardedLaunch apart(*instance, *ready.program, ready.executable, {});
    for (const uint64_t seed : {4u, 5u})
      if (!apart.run(seed, "aliases " + aliases + " not taken", sample.bound)) return;
    if (!taken.run(6, "aliases " + aliases + " taken again", sample.bound)) return;
  }
}

// Passes constants as arguments, unless the backend absorbs them.
void constants_as_arguments(Contract& c) {
  const auto instance = open_to_execute(c);
  if (!instance) return;
  if (instance->device().has(COLLET_TRAIT_INLINE_CONSTANTS))
    return c.skip("the device has COLLET_TRAIT_INLINE_CONSTANTS");
  bool any = false;
  for (const Sample& sample : samples()) {
    const auto program = TestProgram::make(sample.body, {}, {.constants = Constants::AsArguments});
    if (!program.ok()) return c.fault(program.status());
    if ((*program)->constants().empty() || !accepts(*instance, (*program)->get())) continue;
    CompileResult made = compile(*instance, (*program)->get());
    if (declines_whole((*program)->get(), made)) continue;
    if (!c.check(made.status == COLLET_OK, Promise::SUPPORTS_PROMISE,
                 "{}, with constants as arguments, gave status {} from compile: {}", sample.name, made.status,
                 made.message))
      return;
    if (has_layouts(*instance, **program, made.executable)) continue;
    any = true;
    GuardedLaunch guarded(*instance, **program, made.executable, {});
    for (const uint64_t seed : {1u, 2u})
      if (!guarded.run(seed, sample.name + ", with constants as arguments", sample.bound)) return;
  }
  if (!any) c.skip("the backend takes none of the programs");
}

// Runs programs with constants of 16 KiB inside the program.
void inline_constants(Contract& c) {
  const auto instance = open_to_execute(c);
  if (!instance) return;
  if (!instance->device().has(COLLET_TRAIT_INLINE_CONSTANTS))
    return c.skip("the device does not have COLLET_TRAIT_INLINE_CONSTANTS");
  bool any = false;
  for (const std::string_view type : {"f32", "s32"}) {
    std::string numbers;
    for (int i = 0; i < 4096; ++i) numbers += fmt::format("{}{}", i ? ", " : "", i % 13 - 6);
    const auto program =
        TestProgram::make(fmt::format("ENTRY main {{\n  x = {0}[4096] parameter(0)\n  w = {0}[4096] constant({{{1}}})\n"
                                      "  ROOT r = {0}[4096] add(x, w)\n}}\n",
                                      type, numbers),
                          {}, {.constants = Constants::Inline});
    if (!program.ok()) return c.fault(program.status());
    if (!accepts(*instance, (*program)->get())) continue;
    CompileResult made = compile(*instance, (*program)->get());
    if (!c.check(made.status == COLLET_OK, Promise::INLINE_CONSTANTS,
                 "a program with an inline constant of 16 KiB gave status {} from compile: {}", made.status,
                 made.message))
      return;
    if (has_layouts(*instance, **program, made.executable)) continue;
    any = true;
    GuardedLaunch guarded(*instance, **program, made.executable, {});
    for (const uint64_t seed : {1u, 2u})
      if (!guarded.run(seed, "with an inline constant of 16 KiB")) return;
  }
  if (!any) c.skip("the backend takes none of the programs");
}

void same_buffer_twice(Contract& c) {
  const Start s = start_with_sum(c);
  if (!s) return;
  GuardedLaunch guarded(*s.instance, *s.ready.program, s.ready.executable, {.same_as = {0, 0}});
  for (const uint64_t seed : {1u, 2u})
    if (!guarded.run(seed, "one buffer as both arguments")) return;
}

// Runs a hundred times, each with other data, using two sets of buffers in turn.
void hundred_runs(Contract& c) {
  const Start s = start_with_sum(c);
  if (!s) return;
  GuardedLaunch one(*s.instance, *s.ready.program, s.ready.executable, {});
  GuardedLaunch other(*s.instance, *s.ready.program, s.ready.executable, {.one_buffer = true});
  for (uint64_t seed = 1; seed <= 100; ++seed)
    if (!(seed % 3 ? one : other).run(seed, fmt::format("run {}", seed))) return;
}

// A launch must not touch the arguments, results and workspace of an earlier launch.
bool leaves_other_buffers(Instance& instance, const PreparedProgram& ready, const std::string& what) {
  GuardedLaunch earlier(instance, *ready.program, ready.executable, {}),
      later(instance, *ready.program, ready.executable, {});
  return earlier.run(1, what + ", in the first buffers") && earlier.fill(ready.program->draw(2), 2) &&
         later.run(3, what + ", in other buffers") &&
         earlier.is_untouched(what + ", in other buffers,", Promise::EXECUTE);
}

// Frees and reallocates the buffers between runs: the executable must not keep their addresses.
void other_buffers(Contract& c) {
  const Start s = start_with_sum(c);
  if (!s) return;
  if (!leaves_other_buffers(*s.instance, s.ready, "the sum")) return;
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    GuardedLaunch guarded(*s.instance, *s.ready.program, s.ready.executable, {.tight = seed % 2 == 0});
    if (!guarded.run(seed, "in new buffers") || !guarded.run(seed + 50, "in new buffers, again")) return;
  }
}

void interleaved(Contract& c) {
  const auto instance = open_to_execute(c);
  if (!instance) return;
  std::vector<std::pair<std::string, PreparedProgram>> all;
  for (const Sample& sample : samples()) {
    if (all.size() == 4) break;
    if (sample.bound.kind != Bound::Kind::Exact) continue;
    PreparedProgram ready = prepare(*instance, sample.body, {}, {}, false);
    if (ready) all.emplace_back(sample.name, std::move(ready));
  }
  if (all.size() < 2) return c.skip("the backend takes fewer than two of the programs");
  std::vector<std::unique_ptr<GuardedLaunch>> guarded_launches;
  for (auto& [name, ready] : all)
    guarded_launches.push_back(
        std::make_unique<GuardedLaunch>(*instance, *ready.program, ready.executable, Placement{}));
  for (uint64_t round = 1; round <= 6; ++round)
    for (size_t i = 0; i < all.size(); ++i)
      if (!guarded_launches[i]->run(round, "between others: " + all[i].first)) return;
  // Releasing one executable must not change the others.
  guarded_launches[0].reset();
  all[0].second.executable.reset();
  for (size_t i = 1; i < all.size(); ++i)
    if (!guarded_launches[i]->run(7, "after another was released: " + all[i].first)) return;
}

// Keeps many executables of one op with different shapes, and runs them in another order than that of their compilation. The
// number depends on how long the compiler takes.
void thousand_executables(Contract& c) {
  constexpr int64_t kFewest = 48;
  constexpr int64_t kMost = 1000;
  constexpr std::chrono::seconds kTime{1};
  const auto instance = open_to_execute(c);
  if (!instance) return;
  const std::string sum = accepted_sum(*instance);
  if (sum.empty()) return;
  const auto body_of = [&](int64_t elements) {
    std::string body = sum;
    const std::string from = "[300]";
    const std::string to = "[" + std::to_string(elements) + "]";
    for (size_t at = body.find(from); at != std::string::npos; at = body.find(from, at + to.size()))
      body.replace(at, from.size(), to);
    return body;
  };
  std::vector<PreparedProgram> all;
  const auto begin = std::chrono::steady_clock::now();
  for (int64_t i = 0; i < kMost && (i < kFewest || std::chrono::steady_clock::now() - begin < kTime); ++i) {
    auto program = TestProgram::make(body_of(i + 1));
    if (!program.ok() || !accepts(*instance, (*program)->get())) continue;
    CompileResult made = compile(*instance, (*program)->get());
    if (made.status == COLLET_RESOURCE_EXHAUSTED && i >= kFewest) break;
    if (!c.check(made.status == COLLET_OK, Promise::COMPILE, "with {} executables open, compile gave status {}: {}",
                 all.size(), made.status, made.message))
      return;
    all.push_back({std::move(*program), std::move(made.executable)});
  }
  if (all.size() < 2) return c.skip("the backend takes the op for one shape only");
  const auto run = [&](const PreparedProgram& one, uint64_t seed, const char* when) {
    return GuardedLaunch(*instance, *one.program, one.executable, {})
        .run(seed, fmt::format("{} of {} executables, {}", &one - all.data(), all.size(), when));
  };
  std::vector<size_t> order(all.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::shuffle(order.begin(), order.end(), std::mt19937_64(1));
  for (const size_t i : order)
    if (!run(all[i], i + 1, "all of them open")) return;
  for (size_t at = 0; at < order.size(); at += 2) all[order[at]].executable.reset();
  for (size_t at = 1; at < order.size(); at += 2)
    if (!run(all[order[at]], at, "after every second one was released")) return;
  CompileResult again = compile(*instance, all[order[0]].program->get());
  if (!c.check(again.status == COLLET_OK, Promise::COMPILE, "compile after many releases gave status {}: {}",
               again.status, again.message))
    return;
  all[order[0]].executable = std::move(again.executable);
  run(all[order[0]], 1, "compiled again");
}

void same_program_twice(Contract& c) {
  const Start s = start_with_sum(c);
  if (!s) return;
  CompileResult second = compile(*s.instance, s.ready.program->get());
  if (!c.check(second.status == COLLET_OK, Promise::COMPILE, "the same program gave status {} the second time: {}",
               second.status, second.message))
    return;
  c.check(second.executable.handle() != s.ready.executable.handle(), Promise::RELEASE,
          "the same program gave the same handle twice, and each is released");
  GuardedLaunch first_guarded(*s.instance, *s.ready.program, s.ready.executable, {});
  {
    GuardedLaunch guarded(*s.instance, *s.ready.program, second.executable, {});
    if (!guarded.run(1, "the second executable of a program") || !first_guarded.run(2, "the first one")) return;
  }
  second.executable.reset();
  first_guarded.run(3, "the first executable of a program after the second was released");
}

void two_instances(Contract& c) {
  const Start s = start_with_sum(c);
  if (!s) return;
  const Start other = start_with_sum(c);
  if (!other) return;
  GuardedLaunch a(*s.instance, *s.ready.program, s.ready.executable, {});
  GuardedLaunch b(*other.instance, *other.ready.program, other.ready.executable, {});
  for (uint64_t seed = 1; seed <= 3; ++seed)
    if (!a.run(seed, "the first of two instances") || !b.run(seed + 10, "the second of two instances")) return;
}

void several_devices(Contract& c) {
  const auto instance = open_to_execute(c, 2);
  if (!instance) return;
  if (instance->devices().size() < 2) return c.skip("there is one device");
  const std::string body = accepted_sum(*instance);
  if (body.empty()) return;
  std::vector<PreparedProgram> ready;
  for (uint32_t d = 0; d < 2; ++d) {
    ready.push_back(prepare(*instance, body, {}, {.device = d}));
    if (!ready.back()) return;
  }
  std::vector<std::unique_ptr<GuardedLaunch>> guarded_launches;
  for (uint32_t d = 0; d < 2; ++d)
    guarded_launches.push_back(
        std::make_unique<GuardedLaunch>(*instance, *ready[d].program, ready[d].executable, Placement{.device = d}));
  for (uint64_t seed = 1; seed <= 4; ++seed)
    for (uint32_t d = 0; d < 2; ++d)
      if (!guarded_launches[d]->run(seed * 2 + d, fmt::format("on device {}", d))) return;
  if (!instance->device(0).has(COLLET_TRAIT_SHARED_CODE) ||
      instance->device(0).fingerprint != instance->device(1).fingerprint)
    return;
  GuardedLaunch shared(*instance, *ready[0].program, ready[0].executable, {.device = 1});
  for (uint64_t seed = 1; seed <= 2; ++seed) {
    const bool good = shared.run(seed, "device 0's executable on device 1");
    c.check(good, Promise::SHARED_CODE, "the device has COLLET_TRAIT_SHARED_CODE");
    if (!good) return;
  }
}

void threads_at_once(Contract& c) {
  const auto instance = open_to_execute(c);
  if (!instance) return;
  if (instance->serial()) return c.skip("the device has COLLET_TRAIT_SERIAL");
  std::vector<std::pair<std::string, PreparedProgram>> all;
  for (const char* name : {"add", "long", "chain", "dot", "less_most", "sort", "add_s32"}) {
    const auto sample =
        std::find_if(samples().begin(), samples().end(), [&](const Sample& one) { return one.name == name; });
    PreparedProgram ready = prepare(*instance, sample->body, {}, {}, false);
    if (ready) all.emplace_back(name, std::move(ready));
    if (all.size() == 3) break;
  }
  if (all.empty()) return c.skip("the backend takes none of the programs");
  for (auto& [name, ready] : all) {
    GuardedLaunch guarded(*instance, *ready.program, ready.executable, {});
    if (!guarded.run(1, "before there are threads: " + name)) return;
  }
  on_threads(4, [&](int thread) {
    std::vector<std::unique_ptr<GuardedLaunch>> guarded_launches;
    for (auto& [name, ready] : all)
      guarded_launches.push_back(
          std::make_unique<GuardedLaunch>(*instance, *ready.program, ready.executable, Placement{}));
    for (uint64_t i = 0; i < 12; ++i) {
      const size_t which = (i + static_cast<uint64_t>(thread)) % all.size();
      if (!guarded_launches[which]->run(i * 4 + static_cast<uint64_t>(thread),
                                        "four threads at once: " + all[which].first))
        return;
    }
  });
  c.check(!c.broken(), Promise::THREADS, "before there were threads the programs ran right");
  if (c.broken()) return;
  // Repeats the same launch without a pause, because threads on one processor rarely run at the same moment. An
  // elementwise program must give the same bytes each time.
  const PreparedProgram& ready = all[all.size() > 1 && all[1].first == "long" ? 1 : 0].second;
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(600);
  on_threads(3, [&](int thread) {
    GuardedLaunch guarded(*instance, *ready.program, ready.executable, {});
    if (!guarded.run(static_cast<uint64_t>(thread) + 1, "three threads at once")) return;
    const std::vector<Bytes> first = guarded.read_results();
    while (std::chrono::steady_clock::now() < end && !c.broken()) {
      if (guarded.execute() != COLLET_OK) return;
      const std::vector<Bytes> again = guarded.read_results();
      for (size_t i = 0; i < first.size() && i < again.size(); ++i) {
        const std::string wrong = difference_text(again[i], first[i]);
        c.check(wrong.empty(), Promise::THREADS, "with three threads at work an execution gave another result {}: {}",
                i, wrong);
      }
    }
  });
}

// Four threads run a program at once. Their results lie side by side in one buffer, so that whoever writes, or writes back,
// more than a result disturbs another one.
void neighbours(Contract& c) {
  constexpr int kThreads = 4;
  const Start s = start_with_sum(c);
  if (!s) return;
  if (s.instance->serial()) return c.skip("the device has COLLET_TRAIT_SERIAL");
  const hlo::Shape& shape = s.ready.program->results()[0];
  const auto bytes = static_cast<uint64_t>(shape.byte_size());
  const uint64_t alignment = s.instance->device().alignment();
  const uint64_t distance = (bytes + alignment - 1) / alignment * alignment;
  Buffer shared = s.instance->alloc(kThreads * distance);
  if (!shared) return;
  on_threads(kThreads, [&](int thread) {
    GuardedLaunch guarded(*s.instance, *s.ready.program, s.ready.executable, {});
    const uint64_t offset = static_cast<uint64_t>(thread) * distance;
    for (uint64_t i = 0; i < 40 && !c.broken(); ++i) {
      const std::vector<hlo::Literal> inputs = s.ready.program->draw(i * kThreads + static_cast<uint64_t>(thread) + 1);
      const auto expected = s.ready.program->evaluate(inputs);
      if (!expected.ok()) return c.fault(expected.status());
      if (!guarded.fill(inputs, i)) return;
      guarded.results()[0].buffer = shared.handle();
      guarded.results()[0].offset = offset;
      const collet_status status = guarded.execute();
      if (!c.check(status == COLLET_OK, Promise::EXECUTE, "execute beside others gave status {}", status)) return;
      // Every second thread leaves the others time to disturb its result.
      if (thread % 2 == 1) std::this_thread::sleep_for(std::chrono::microseconds(300));
      Bytes now(bytes);
      if (!s.instance->read(shared, offset, now.data(), bytes)) return;
      const Comparison compared =
          compare({(*expected)[0], {}, {}}, hlo::Literal::from_bytes(shape, now.data()), {}, false);
      if (!c.check(compared.agrees, Promise::THREADS,
                   "with the results of other threads beside it in one buffer, a result is {} at {} and should be {}",
                   compared.got, index_text(shape, compared.first), compared.expected))
        return;
    }
  });
}

// Runs a program in one thread while another thread compiles and releases.
void release_beside_runs(Contract& c) {
  const Start s = start_with_sum(c);
  if (!s) return;
  if (s.instance->serial()) return c.skip("the device has COLLET_TRAIT_SERIAL");
  std::atomic<bool> stop{false};
  on_threads(2, [&](int thread) {
    if (thread == 0) {
      GuardedLaunch guarded(*s.instance, *s.ready.program, s.ready.executable, {});
      for (uint64_t seed = 1; seed <= 40; ++seed)
        if (!guarded.run(seed, "while others are compiled and released")) break;
      stop = true;
      return;
    }
    while (!stop) {
      CompileResult other = compile(*s.instance, s.ready.program->get());
      if (!c.check(other.status == COLLET_OK, Promise::THREADS, "compile beside a run gave status {}", other.status))
        return;
    }
  });
}

// A launch with one error.
struct WrongLaunch {
  const char* name;
  std::function<void(GuardedLaunch&, Buffer& elsewhere)> spoil;
  bool counts = false;  ///< the number of arguments or results is wrong
};

const std::vector<WrongLaunch>& wrong_launches() {
  static const std::vector<WrongLaunch> all = {
      {"an argument too few", [](GuardedLaunch& r, Buffer&) { --r.launch().argument_count; }, true},
      {"an argument too many",
       [](GuardedLaunch& r, Buffer&) {
         r.arguments().push_back(r.arguments()[0]);
         r.launch().arguments = r.arguments().data();
         ++r.launch().argument_count;
       },
       true},
      {"a result too few", [](GuardedLaunch& r, Buffer&) { r.launch().result_count = 0; }, true},
      {"a result too many",
       [](GuardedLaunch& r, Buffer&) {
         r.results().push_back(r.results()[0]);
         r.launch().results = r.results().data();
         ++r.launch().result_count;
       },
       true},
      {"an argument without a buffer", [](GuardedLaunch& r, Buffer&) { r.arguments()[1].buffer = nullptr; }},
      {"an argument beyond the end of its buffer",
       [](GuardedLaunch& r, Buffer&) { r.arguments()[1].offset = 1 << 20; }},
      {"a result beyond the end of its buffer", [](GuardedLaunch& r, Buffer&) { r.results()[0].offset = 1 << 20; }},
      {"an argument in a buffer that is too small",
       [](GuardedLaunch& r, Buffer& small) {
         r.arguments()[1].buffer = small.handle();
         r.arguments()[1].offset = 0;
       }},
      {"a result in a buffer that is too small",
       [](GuardedLaunch& r, Buffer& small) {
         r.results()[0].buffer = small.handle();
         r.results()[0].offset = 0;
       }},
      {"a device that is not there", [](GuardedLaunch& r, Buffer&) { r.launch().device = 77; }},
  };
  return all;
}

// Checks that donated arguments are unchanged after each refused launch, and that a correct launch still runs.
void refused_launches(Contract& c) {
  const Start s = start_with_sum(c);
  if (!s) return;
  Buffer small = s.instance->alloc(16);
  std::optional<Promise> promise;
  for (const WrongLaunch& wrong : wrong_launches()) {
    if (promise && *promise != Promise::LAUNCH_CHECKED && !wrong.counts) break;
    GuardedLaunch guarded(*s.instance, *s.ready.program, s.ready.executable, {.donate_all = true});
    const std::vector<hlo::Literal> inputs = s.ready.program->draw(1);
    if (!guarded.fill(inputs, 1)) return;
    wrong.spoil(guarded, small);
    const collet_status status = guarded.execute();
    const bool is_refused =
        status == COLLET_INVALID_ARGUMENT || status == COLLET_NOT_FOUND || status == COLLET_OUT_OF_RANGE;
    if (!promise) promise = c.judged_by(Promise::LAUNCH_CHECKED, is_refused);
    if (!promise) return c.skip("the backend's version of the ABI does not say");
    if (!c.check(is_refused, *promise, "a launch with {} gave status {}", wrong.name, status)) return;
    if (!guarded.is_untouched(fmt::format("a refused launch with {}", wrong.name), Promise::EXECUTE_ERROR)) return;
    GuardedLaunch right(*s.instance, *s.ready.program, s.ready.executable, {});
    if (!right.run(2, fmt::format("after a refused launch with {}", wrong.name))) return;
  }
}

// Neither the offset of a result nor its size reaches beyond the end of its buffer, but both together do.
void result_reaches_beyond(Contract& c) {
  const Start s = start_with_sum(c);
  if (!s) return;
  if (!c.holds(Promise::LAUNCH_CHECKED)) return c.skip("the backend's version of the ABI does not say");
  GuardedLaunch guarded(*s.instance, *s.ready.program, s.ready.executable, {.tight = true, .donate_all = true});
  if (!guarded.fill(s.ready.program->draw(1), 1)) return;
  guarded.results()[0].offset += s.instance->device().alignment();
  const collet_status status = guarded.execute();
  c.check(status == COLLET_INVALID_ARGUMENT || status == COLLET_NOT_FOUND || status == COLLET_OUT_OF_RANGE,
          Promise::LAUNCH_CHECKED, "a launch with a result that reaches beyond the end of its buffer gave status {}",
          status);
  guarded.is_untouched("a launch whose result reaches beyond the end of its buffer", Promise::EXECUTE_ERROR);
}

// Checks that a workspace has the size that compile asked for, and is there.
void refused_workspaces(Contract& c) {
  const auto instance = open_to_execute(c);
  if (!instance) return;
  if (!c.holds(Promise::LAUNCH_CHECKED)) return c.skip("the backend's version of the ABI does not say");
  using Spoil = std::function<void(collet_argument&, const Buffer&)>;
  const std::pair<const char*, Spoil> all[] = {
      {"without a workspace", [](collet_argument& w, const Buffer&) { w = {}; }},
      {"with a workspace of one byte less",
       [](collet_argument& w, const Buffer& small) { w.buffer = small.handle(), w.offset = 0, --w.bytes; }},
      {"with a workspace that reaches beyond the end of its buffer",
       [](collet_argument& w, const Buffer& small) { w.buffer = small.handle(), w.offset = 0; }},
  };
  for (const char* name :
       {"chain", "less_most", "dot_and_add", "sort", "reverse_and_add", "sums_of_each_other", "loop"}) {
    const auto sample =
        std::find_if(samples().begin(), samples().end(), [&](const Sample& one) { return one.name == name; });
    const PreparedProgram ready = prepare(*instance, sample->body, {}, {}, false);
    if (c.broken()) return;
    if (!ready || ready.executable.workspace_bytes < 2) continue;
    const Buffer small =
        instance->alloc(ready.executable.workspace_bytes - 1, 0,
                        std::max(ready.executable.workspace_alignment, instance->device().alignment()));
    for (const auto& [what, spoil] : all) {
      GuardedLaunch guarded(*instance, *ready.program, ready.executable, {.donate_all = true});
      if (!small || !guarded.fill(ready.program->draw(1), 1)) return;
      spoil(guarded.launch().workspace, small);
      const collet_status status = guarded.execute();
      if (!c.check(status == COLLET_INVALID_ARGUMENT || status == COLLET_NOT_FOUND || status == COLLET_OUT_OF_RANGE,
                   Promise::LAUNCH_CHECKED, "a launch {} gave status {}", what, status))
        return;
      if (!guarded.is_untouched(fmt::format("a refused launch {}", what), Promise::EXECUTE_ERROR)) return;
    }
    return;
  }
  c.skip("no program has a workspace");
}

// Checks that a launch with a layout that was not negotiated changes nothing if the backend refuses it. The header does
// not require the refusal.
void errors_change_nothing(Contract& c) {
  const Start s = start_with_sum(c);
  if (!s) return;
  GuardedLaunch guarded(*s.instance, *s.ready.program, s.ready.executable, {.donate_all = true});
  const std::vector<hlo::Literal> inputs = s.ready.program->draw(1);
  if (!guarded.fill(inputs, 1)) return;
  guarded.arguments()[1].layout = 77;  // a layout that was not negotiated
  const collet_status status = guarded.execute();
  if (status == COLLET_OK) return c.skip("the backend does not look at layouts");
  guarded.is_untouched("a refused launch", Promise::EXECUTE_ERROR);
  GuardedLaunch right(*s.instance, *s.ready.program, s.ready.executable, {});
  right.run(2, "after a refused launch");
}

// Runs several ops of which only the last reads an argument that extends beyond the end of its buffer: a backend that
// refuses the launch must not have run the ops before it. A backend without this check reads some bytes that do not
// affect any result.
void late_refusal(Contract& c) {
  const std::string body =
      "ENTRY main {\n  x = f32[300] parameter(0)\n  w = f32[300] parameter(1)\n  y = f32[300] add(x, x)\n"
      "  z = f32[300] multiply(y, x)\n  v = f32[300] add(z, w)\n  ROOT r = (f32[300], f32[300]) tuple(y, v)\n}\n";
  for (const char* aliases : {"", "{0}: (0, {}, may-alias)"}) {
    const Start s = start(c, body, aliases);
    if (!s) return;
    GuardedLaunch guarded(*s.instance, *s.ready.program, s.ready.executable,
                          {.take_aliases = true, .tight = true, .donate_all = true});
    if (!guarded.fill(s.ready.program->draw(1), 1)) return;
    guarded.arguments()[1].offset += s.instance->device().alignment();
    if (guarded.execute() == COLLET_OK) {
      if (!c.holds(Promise::LAUNCH_CHECKED)) return c.skip("the backend does not look at the ends of buffers");
      c.check(false, Promise::LAUNCH_CHECKED,
              "a launch with an argument that reaches beyond the end of its buffer ran");
      return;
    }
    if (!guarded.is_untouched("a launch that was refused for its last argument", Promise::EXECUTE_ERROR)) return;
    GuardedLaunch right(*s.instance, *s.ready.program, s.ready.executable, {.take_aliases = true});
    if (!right.run(2, "after a launch that was refused for its last argument")) return;
  }
}

// Overwrites the launches, arguments and results after the call, because they belong to the caller again.
void launch_is_forgotten(Contract& c) {
  const Start s = start_with_sum(c);
  if (!s) return;
  GuardedLaunch guarded(*s.instance, *s.ready.program, s.ready.executable, {});
  const std::vector<hlo::Literal> inputs = s.ready.program->draw(1);
  if (!guarded.fill(inputs, 1)) return;
  auto launch = std::make_unique<collet_launch>(guarded.launch());
  auto arguments = std::make_unique<std::vector<collet_argument>>(guarded.arguments());
  launch->arguments = arguments->data();
  const collet_status status = checked_call(c, "execute", [&](collet_error* error) {
    return s.instance->table().execute(s.ready.executable.handle(), launch.get(), 1, 0, error);
  });
  if (!c.check(status == COLLET_OK, Promise::EXECUTE, "execute gave status {}", status)) return;
  std::memset(static_cast<void*>(arguments->data()), 0xee, arguments->size() * sizeof(collet_argument));
  std::memset(static_cast<void*>(launch.get()), 0xee, sizeof *launch);
  guarded.judge(inputs, "the launch was overwritten after execute had returned");
}

void workspace_stands_alone(Contract& c) {
  const auto instance = open_to_execute(c);
  if (!instance) return;
  bool any = false;
  for (const char* name :
       {"chain", "less_most", "dot_and_add", "sort", "reverse_and_add", "sums_of_each_other", "loop"}) {
    const auto sample =
        std::find_if(samples().begin(), samples().end(), [&](const Sample& one) { return one.name == name; });
    const PreparedProgram ready = prepare(*instance, sample->body, {}, {}, false);
    if (!ready || ready.executable.workspace_bytes == 0) continue;
    any = true;
    if (!leaves_other_buffers(*instance, ready, name)) return;
    // Uses two sets of buffers, so that contents of the workspace from one run cannot help another.
    GuardedLaunch first(*instance, *ready.program, ready.executable, {}),
        second(*instance, *ready.program, ready.executable, {});
    for (uint64_t seed = 1; seed <= 4; ++seed) {
      if (!first.run(seed, std::string(name) + ", with garbage in the workspace") ||
          !second.run(seed + 20, std::string(name) + ", in another workspace"))
        return;
    }
  }
  if (!any) c.skip("no executable asks for a workspace");
}

// Compiles, runs and releases a program many times. Returns false if the case has ended; `bytes` is what one that is kept takes at
// least.
bool leaves_nothing(Instance& instance, const PreparedProgram& ready, uint64_t bytes, const std::string& what) {
  Contract& c = instance.contract();
  const auto cycle = [&] {
    const CompileResult made = compile(instance, ready.program->get());
    if (made.status != COLLET_OK) return false;
    GuardedLaunch guarded(instance, *ready.program, made.executable, {});
    return guarded.run(1, "between compile and release");
  };
  // What one thread allocates and another frees stays in the lists of the latter, so that the heap grows until they are full.
  constexpr int kAttempts = 3;
  Growth growth;
  const auto grows = [&] { return growth.heap >= static_cast<double>(bytes) / 4 || growth.always >= 8; };
  for (int attempt = 0; attempt < kAttempts && (attempt == 0 || grows()); ++attempt) growth = measure_growth(8, cycle);
  return c.check(growth.heap < static_cast<double>(bytes) / 4, Promise::RELEASE,
                 "each compile and release{} leaves {:.0f} bytes of the heap behind", what, growth.heap) &&
         c.check(growth.always < 8, Promise::RELEASE,
                 "each compile and release{} leaves {:.0f} bytes of the heap behind", what, growth.always);
}

void executables_leave_nothing(Contract& c) {
  const auto instance = open_to_execute(c);
  if (!instance) return;
  const std::string body = accepted_sum(*instance);
  if (body.empty()) return;
  // Length of the module's name, which makes the block large, so that a backend that keeps blocks is noticed.
  constexpr size_t kName = 200000;
  const PreparedProgram ready = prepare(*instance, body, {}, {}, true, kName);
  if (!ready || !leaves_nothing(*instance, ready, kName, "")) return;
  constexpr int kNumbers = 200;  // few, so that the constant is a part of the program
  for (const std::string_view type : {"f32", "s32"}) {
    std::string numbers;
    for (int i = 0; i < kNumbers; ++i) numbers += fmt::format("{}{}", i ? ", " : "", i % 13 - 6);
    const PreparedProgram with_constant =
        prepare(*instance,
                fmt::format("ENTRY main {{\n  x = {0}[{1}] parameter(0)\n  c = {0}[{1}] constant({{{2}}})\n"
                            "  ROOT r = {0}[{1}] add(x, c)\n}}\n",
                            type, kNumbers, numbers),
                {}, {}, false);
    if (c.broken()) return;
    if (with_constant) {
      leaves_nothing(*instance, with_constant, kName, " of a program with a constant");
      return;
    }
  }
}

void runs_leave_nothing(Contract& c) {
  const Start s = start_with_sum(c);
  if (!s) return;
  GuardedLaunch guarded(*s.instance, *s.ready.program, s.ready.executable, {});
  if (!guarded.run(1, "once")) return;
  const auto cycle = [&] { return guarded.execute() == COLLET_OK; };
  const Growth growth = measure_growth(1000, cycle);
  c.check(growth.heap < 16, Promise::EXECUTE, "each execution leaves {:.1f} bytes of the heap behind", growth.heap);
}

}  // namespace

void add_execute_contracts(std::vector<ContractCase>& list) {
  for (const Sample& sample : samples())
    list.push_back({"execute/" + sample.name, [&sample](Contract& c) { run_sample(c, sample); }, sample.body});
  list.push_back({"execute/constants_as_arguments", constants_as_arguments});
  list.push_back({"execute/inline_constants", inline_constants});
  list.push_back({"execute/same_buffer_twice", same_buffer_twice});
  list.push_back({"execute/hundred_runs", hundred_runs});
  list.push_back({"execute/other_buffers", other_buffers});
  list.push_back({"execute/interleaved", interleaved});
  list.push_back({"execute/thousand_executables", thousand_executables});
  list.push_back({"execute/same_program_twice", same_program_twice});
  list.push_back({"execute/two_instances", two_instances});
  list.push_back({"execute/several_devices", several_devices});
  list.push_back({"execute/threads", threads_at_once});
  list.push_back({"execute/neighbours", neighbours});
  list.push_back({"execute/release_beside_runs", release_beside_runs});
  list.push_back({"execute/refused_launches", refused_launches});
  list.push_back({"execute/result_reaches_beyond", result_reaches_beyond});
  list.push_back({"execute/refused_workspaces", refused_workspaces});
  list.push_back({"execute/errors_change_nothing", errors_change_nothing});
  list.push_back({"execute/late_refusal", late_refusal});
  list.push_back({"execute/launch_is_forgotten", launch_is_forgotten});
  list.push_back({"execute/workspace", workspace_stands_alone});
  list.push_back({"execute/executables_leave_nothing", executables_leave_nothing});
  list.push_back({"execute/runs_leave_nothing", runs_leave_nothing});
  for (const Sample& sample : samples())
    list.push_back({"alias/" + sample.name, [&sample](Contract& c) { run_aliased(c, sample); }, sample.body});
}

}  // namespace collet::conformance
