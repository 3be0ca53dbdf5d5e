// SPDX-License-Identifier: Apache-2.0
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "conformance/contract/program.h"
#include "conformance/contract/samples.h"

namespace collet::conformance {
namespace {

// A program block in memory pages of its own. It ends `gap` bytes before an inaccessible page.
class Pages {
 public:
  explicit Pages(std::span<const char> block, size_t gap = 0) {
    const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    inside_ = (block.size() + gap + page - 1) / page * page;
    base_ =
        static_cast<char*>(mmap(nullptr, inside_ + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (base_ == MAP_FAILED) {
      base_ = nullptr;
      return;
    }
    whole_ = inside_ + page;
    mprotect(base_ + inside_, page, PROT_NONE);
    block_ = base_ + (inside_ - block.size() - gap) / 8 * 8;  // as close to the end as an alignment of 8 bytes allows
    std::memcpy(block_, block.data(), block.size());
  }
  ~Pages() { unmap(); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  const collet_program* get() const { return reinterpret_cast<const collet_program*>(block_); }
  void make_read_only() { mprotect(base_, inside_, PROT_READ); }
  void wipe() {
    mprotect(base_, inside_, PROT_READ | PROT_WRITE);
    std::memset(base_, 0xee, inside_);
  }
  void unmap() {
    if (base_) munmap(base_, whole_);
    base_ = nullptr;
  }

 private:
  char *base_ = nullptr, *block_ = nullptr;
  size_t inside_ = 0, whole_ = 0;
};

// Returns one program for each sample of samples.h.
std::vector<std::pair<std::string, std::unique_ptr<TestProgram>>> all_programs() {
  std::vector<std::pair<std::string, std::unique_ptr<TestProgram>>> out;
  for (const Sample& sample : samples()) {
    auto made = TestProgram::make(sample.body);
    if (made.ok()) out.emplace_back(sample.name, *std::move(made));
  }
  return out;
}

std::unique_ptr<Instance> open_that_computes(Contract& c) {
  if (!c.plugin().computes()) {
    c.skip("the backend runs no ops");
    return nullptr;
  }
  return Instance::open(c);
}

bool same_verdict(const collet_verdict& a, const collet_verdict& b) {
  return a.answer == b.answer && a.group == b.group && a.cost_ns == b.cost_ns &&
         strncmp(a.reason, b.reason, sizeof a.reason) == 0;
}

// supports must give the same answer to the same question: when it is asked again, for one op at a time, for the ops in
// reverse order, in another instance, and after programs have been compiled.
void supports_is_pure(Contract& c) {
  const auto instance = open_that_computes(c);
  if (!instance) return;
  const auto programs = all_programs();
  std::vector<std::vector<collet_verdict>> first;
  for (const auto& [name, program] : programs) {
    first.emplace_back();
    if (!ask(*instance, program->get(), entry_ops(program->get()), first.back())) return;
  }
  const auto other = Instance::open(c);
  if (!other) return;
  for (size_t i = 0; i < programs.size(); ++i) {
    const auto& [name, program] = programs[i];
    const std::vector<uint32_t> ops = entry_ops(program->get());
    std::vector<collet_verdict> again;
    const auto expect = [&](const std::vector<collet_verdict>& got, size_t at, const char* how) {
      return c.check(same_verdict(got[at], first[i][at % first[i].size()]), Promise::SUPPORTS_PURE,
                     "asked {}, supports answered {} ({}) for op {} of {} and {} ({}) before", how, got[at].answer,
                     std::string(got[at].reason, strnlen(got[at].reason, sizeof got[at].reason)), at, name,
                     first[i][at % first[i].size()].answer, std::string(first[i][at % first[i].size()].reason));
    };
    if (!ask(*instance, program->get(), ops, again)) return;
    for (size_t at = 0; at < ops.size(); ++at)
      if (!expect(again, at, "again")) return;
    for (size_t at = 0; at < ops.size(); ++at) {
      if (!ask(*instance, program->get(), {&ops[at], 1}, again)) return;
      if (!c.check(again[0].answer == first[i][at].answer, Promise::SUPPORTS_PURE,
                   "asked for one op alone, supports answered {} for op {} of {} and {} among the others",
                   again[0].answer, at, name, first[i][at].answer))
        return;
    }
    std::vector<uint32_t> backwards(ops.rbegin(), ops.rend());
    if (!ask(*instance, program->get(), backwards, again)) return;
    for (size_t at = 0; at < ops.size(); ++at)
      if (!c.check(again[ops.size() - 1 - at].answer == first[i][at].answer, Promise::SUPPORTS_PURE,
                   "asked in another order, supports answered {} for op {} of {} and {} before",
                   again[ops.size() - 1 - at].answer, at, name, first[i][at].answer))
        return;
    if (!ask(*other, program->get(), ops, again)) return;
    for (size_t at = 0; at < ops.size(); ++at)
      if (!expect(again, at, "in a second instance")) return;
  }
  // The answers must also stay the same after programs have been compiled and run, and while there are buffers.
  for (size_t i = 0; i < programs.size(); i += 8) {
    const collet_program* program = programs[i].second->get();
    if (!accepts(*instance, program)) continue;
    const CompileResult made = compile(*instance, program);
    if (made.status != COLLET_OK || !instance->executes() ||
        has_layouts(*instance, *programs[i].second, made.executable))
      continue;
    GuardedLaunch guarded(*instance, *programs[i].second, made.executable, {});
    if (guarded.fill(programs[i].second->draw(1), 1)) guarded.execute();
  }
  std::vector<Buffer> buffers;
  for (uint64_t i = 0; i < 64; ++i) buffers.push_back(instance->alloc(1 + i * 1000));
  for (size_t i = 0; i < programs.size(); ++i) {
    const std::vector<uint32_t> ops = entry_ops(programs[i].second->get());
    std::vector<collet_verdict> again;
    if (!ask(*instance, programs[i].second->get(), ops, again)) return;
    for (size_t at = 0; at < ops.size(); ++at)
      if (!c.check(same_verdict(again[at], first[i][at]), Promise::SUPPORTS_PURE,
                   "after programs were compiled and run, supports answered {} for op {} of {} and {} before",
                   again[at].answer, at, programs[i].first, first[i][at].answer))
        return;
  }
}

// supports may read the program block only. It is given copies of the block at other addresses, in read-only pages, with an
// inaccessible page after the end.
void supports_reads_the_block_alone(Contract& c) {
  const auto instance = open_that_computes(c);
  if (!instance) return;
  for (const auto& [name, program] : all_programs()) {
    const std::vector<uint32_t> ops = entry_ops(program->get());
    std::vector<collet_verdict> first, again;
    if (!ask(*instance, program->get(), ops, first)) return;
    for (const size_t gap : {0u, 8u, 24u}) {
      Pages pages(program->bytes(), gap);
      pages.make_read_only();
      if (!ask(*instance, pages.get(), ops, again)) return;
      for (size_t at = 0; at < ops.size(); ++at)
        if (!c.check(first[at].answer == again[at].answer, Promise::PROGRAM_BLOCK,
                     "for a copy of {} at another address supports answered {} for op {}, and {} before", name,
                     again[at].answer, at, first[at].answer))
          return;
    }
  }
}

// compile may read the program block only, and only while it runs: after it the block is overwritten and unmapped, and the
// executable must still compute the right results.
void compile_keeps_no_pointer(Contract& c) {
  const auto instance = open_that_computes(c);
  if (!instance) return;
  for_each_offered(*instance, [&](const Sample& sample, const TestProgram& original) {
    Pages pages(original.bytes(), 8);
    pages.make_read_only();
    CompileResult made;
    const Visit visit = compile_form(*instance, sample, original, pages.get(), made);
    if (visit == Visit::Stop)
      c.check(false, Promise::PROGRAM_BLOCK, "a copy of {} at another address gave status {} from compile: {}",
              sample.name, made.status, made.message);
    pages.wipe();
    pages.unmap();
    if (visit != Visit::Taken || !instance->executes()) return visit;
    GuardedLaunch guarded(*instance, original, made.executable, {});
    if (guarded.run(1, "after the block of " + sample.name + " was overwritten and unmapped", sample.bound))
      return visit;
    if (runs_right(*instance, sample, original))
      c.check(false, Promise::COMPILE_VALID, "{} runs right as long as its block is there", sample.name);
    return Visit::Stop;
  });
}

// If supports accepts every op of a sample, compile must succeed. prepare() makes that check.
void yes_compiles(Contract& c) {
  const auto instance = open_that_computes(c);
  if (!instance) return;
  for_each_accepted(*instance, [](const Sample&, const PreparedProgram&) { return true; });
}

// A program that compile rejects is rejected for every capacity of the list of ops, 0 included. compile() checks what the list names.
void rejection_room(Contract& c) {
  const auto instance = open_that_computes(c);
  if (!instance) return;
  bool any = false;
  for_each_offered(*instance, [&](const Sample&, const TestProgram& program) {
    const CompileResult made = compile(*instance, program.get());
    if (made.rejected.empty()) return Visit::Taken;
    any = true;
    for (const uint32_t capacity : {0u, 1u}) compile(*instance, program.get(), {.rejection_room = capacity});
    return Visit::Taken;
  });
  if (!any && !c.broken()) c.skip("the backend rejects none of the programs");
}

// What compile states of an executable holds for a program of which it is known: an elementwise op reads its operands and
// writes its result.
void facts(Contract& c) {
  const auto instance = open_that_computes(c);
  if (!instance) return;
  const std::string body = accepted_sum(*instance);
  if (body.empty()) return;
  const PreparedProgram ready = prepare(*instance, body);
  if (!ready) return;
  uint64_t least = 0;
  for (const auto* shapes : {&ready.program->inputs(), &ready.program->results()})
    for (const hlo::Shape& shape : *shapes) least += static_cast<uint64_t>(shape.byte_size());
  c.check(ready.executable.traffic_bytes == 0 || ready.executable.traffic_bytes >= least, Promise::TRAFFIC,
          "compile states {} bytes of traffic, and arguments and results have {}", ready.executable.traffic_bytes,
          least);
}

// Returns programs of one op each, with scalars, empty arrays, dimensions of size 1, odd sizes, high ranks and large
// arrays.
std::vector<std::string> ops_of_many_shapes() {
  std::vector<std::string> all;
  const auto add = [&](const std::string& parameters, const std::string& root) {
    all.push_back(fmt::format("ENTRY main {{\n{}  ROOT r = {}\n}}\n", parameters, root));
  };
  for (const char* type : {"f32", "s32", "bf16", "pred"}) {
    for (const char* dims :
         {"", "0", "1", "17", "3,0,2", "2,3,4", "2,1,3,2", "2,3,1,5,2", "1,2,1,3,1,2", "70001", "300,257"}) {
      const std::string shape = fmt::format("{}[{}]", type, dims), predicate = fmt::format("pred[{}]", dims);
      const std::string one = fmt::format("  x = {} parameter(0)\n", shape);
      const std::string two = one + fmt::format("  w = {} parameter(1)\n", shape);
      for (const char* op : {"add", "maximum"}) add(two, fmt::format("{} {}(x, w)", shape, op));
      add(two, fmt::format("{} compare(x, w), direction=LT", predicate));
      add(two + fmt::format("  p = {} parameter(2)\n", predicate), fmt::format("{} select(p, x, w)", shape));
      add(one, fmt::format("f32[{}] convert(x)", dims));
      add(one, fmt::format("{} negate(x)", shape));
      const std::string_view text = dims;
      const auto rank = text.empty() ? 0 : std::count(text.begin(), text.end(), ',') + 1;
      if (rank == 0) continue;
      add(one, fmt::format("{} reverse(x), dimensions={{{}}}", shape, rank - 1));
      add(fmt::format("  x = {}[] parameter(0)\n", type), fmt::format("{} broadcast(x), dimensions={{}}", shape));
      std::string same;
      for (int64_t d = 0; d < rank; ++d) same += fmt::format("{}{}", d ? "," : "", d);
      add(one, fmt::format("{} transpose(x), dimensions={{{}}}", shape, same));
    }
  }
  return all;
}

void yes_compiles_all_shapes(Contract& c) {
  const auto instance = open_that_computes(c);
  if (!instance) return;
  bool any = false;
  for (const std::string& body : ops_of_many_shapes()) {
    const auto valid = TestProgram::make(body);
    if (!valid.ok()) continue;  // the op is not defined for this type
    const PreparedProgram ready = prepare(*instance, body, {}, {}, false);
    if (c.broken()) {
      c.check(false, Promise::SUPPORTS_PROMISE, "the program was\n{}", body);
      return;
    }
    any |= static_cast<bool>(ready);
  }
  if (!any) c.skip("the backend takes none of the programs");
}

struct Progress {
  std::atomic<int> calls{0};
  int cancel_at = 0;  // the call that says to give up; 0: none
  std::thread::id thread;
  std::atomic<bool> other_thread{false}, bad_value{false};

  static int32_t report(void* user, double done, const char*) {
    auto* self = static_cast<Progress*>(user);
    if (std::this_thread::get_id() != self->thread) self->other_thread = true;
    if (!(done >= 0 && done <= 1)) self->bad_value = true;
    return ++self->calls == self->cancel_at ? 1 : 0;
  }
};

void progress(Contract& c) {
  const auto instance = open_that_computes(c);
  if (!instance) return;
  const std::string body = accepted_sum(*instance);
  if (body.empty()) return;
  Progress counted;
  counted.thread = std::this_thread::get_id();
  // A long program gives the backend more to report, so the longest sample is tried first.
  const auto chain =
      std::find_if(samples().begin(), samples().end(), [](const Sample& one) { return one.name == "chain"; });
  PreparedProgram ready = prepare(*instance, chain->body, {}, {.progress = Progress::report, .user = &counted}, false);
  if (!ready && !c.broken()) ready = prepare(*instance, body, {}, {.progress = Progress::report, .user = &counted});
  if (!ready) return;
  c.check(!counted.other_thread, Promise::PROGRESS, "progress was called by another thread");
  c.check(!counted.bad_value, Promise::PROGRESS, "progress was called with a share that is not from 0 to 1");
  for (const int at : {1, counted.calls.load()}) {
    if (at == 0 || counted.calls == 0) continue;
    Progress cancelling;
    cancelling.thread = std::this_thread::get_id();
    cancelling.cancel_at = at;
    const CompileResult made =
        compile(*instance, ready.program->get(), {.progress = Progress::report, .user = &cancelling});
    c.check(made.status == COLLET_CANCELLED || cancelling.calls < at, Promise::PROGRESS_CANCELS,
            "progress said to give up, and compile gave status {}", made.status);
  }
}

// A compilation that is told to give up, at any of its reports, must end without a further report, and leave nothing behind:
// the program compiles and runs afterwards.
void cancelled(Contract& c) {
  constexpr int kMostReports = 8;
  const auto instance = open_that_computes(c);
  if (!instance) return;
  const std::string body = accepted_sum(*instance);
  if (body.empty()) return;
  const PreparedProgram ready = prepare(*instance, body);
  if (!ready) return;
  for (int at = 1; at <= kMostReports; ++at) {
    Progress cancelling;
    cancelling.thread = std::this_thread::get_id();
    cancelling.cancel_at = at;
    const CompileResult given_up =
        compile(*instance, ready.program->get(), {.progress = Progress::report, .user = &cancelling});
    if (cancelling.calls < at) {
      if (at == 1) c.skip("compile reports no progress");
      return;
    }
    c.check(given_up.status == COLLET_CANCELLED, Promise::PROGRESS_CANCELS,
            "report {} was told to give up, and compile gave status {}", at, given_up.status);
    c.check(cancelling.calls == at, Promise::PROGRESS_CANCELS, "report {} was told to give up, and {} came after it",
            at, cancelling.calls - at);
    const CompileResult again = compile(*instance, ready.program->get());
    if (!c.check(again.status == COLLET_OK, Promise::COMPILE,
                 "after a compilation that was given up at report {}, compile gave status {}: {}", at, again.status,
                 again.message) ||
        !instance->executes())
      return;
    GuardedLaunch guarded(*instance, *ready.program, again.executable, {});
    if (!guarded.run(static_cast<uint64_t>(at), fmt::format("after a compilation that was given up at report {}", at)))
      return;
  }
}

// compile must write nothing beyond the struct_size of its info and rejection. Guard bytes after the structs show such a
// write: for the info of interface 1.0, which has no estimates, for structs of this version, and for structs that are longer.
void sizes_of_compile(Contract& c) {
  constexpr uint8_t kGuard = 0xa5;
  const auto instance = open_that_computes(c);
  if (!instance) return;
  const std::string body = accepted_sum(*instance);
  if (body.empty()) return;
  const PreparedProgram ready = prepare(*instance, body);
  if (!ready) return;
  constexpr auto kOldInfo = static_cast<uint32_t>(offsetof(collet_executable_info, estimated_ns)),
                 kInfo = static_cast<uint32_t>(sizeof(collet_executable_info));
  for (const auto& [info_size, extra] : {std::pair(kOldInfo, 0u), std::pair(kInfo, 0u), std::pair(kInfo + 64, 64u)}) {
    if (extra && c.is_newer()) continue;
    alignas(16) uint8_t info_bytes[sizeof(collet_executable_info) + 128],
        option_bytes[sizeof(collet_compile_options) + 128], rejection_bytes[sizeof(collet_rejection) + 128];
    std::memset(info_bytes, kGuard, sizeof info_bytes);
    std::memset(option_bytes, 0xff, sizeof option_bytes);
    std::memset(rejection_bytes, kGuard, sizeof rejection_bytes);
    std::memset(info_bytes, 0, info_size);
    std::memset(rejection_bytes, 0, sizeof(collet_rejection) + extra);
    auto* info = reinterpret_cast<collet_executable_info*>(info_bytes);
    auto* options = reinterpret_cast<collet_compile_options*>(option_bytes);
    auto* rejection = reinterpret_cast<collet_rejection*>(rejection_bytes);
    const uint32_t device = 0;
    *options = {};
    options->struct_size = static_cast<uint32_t>(sizeof *options) + extra;
    options->optimization = 2;
    options->assignment = &device;
    options->participants = 1;
    info->struct_size = info_size;
    rejection->struct_size = static_cast<uint32_t>(sizeof *rejection) + extra;
    collet_backend_executable* handle = nullptr;
    const collet_status status = checked_call(c, "compile", [&](collet_error* error) {
      return instance->table().compile(instance->handle(), ready.program->get(), options, &handle, info, rejection,
                                       error);
    });
    if (!c.check(status == COLLET_OK && handle, Promise::GROWING,
                 "compile with an info of {} bytes, and other structs that are {} bytes longer, gave status {}",
                 info_size, extra, status))
      return;
    instance->table().release(handle);
    const auto is_untouched_behind = [&](const uint8_t* bytes, size_t size, size_t all) {
      return std::all_of(bytes + size, bytes + all, [](uint8_t byte) { return byte == kGuard; });
    };
    c.check(is_untouched_behind(info_bytes, info_size, sizeof info_bytes), Promise::GROWING,
            "compile wrote beyond the struct_size of its info");
    c.check(is_untouched_behind(rejection_bytes, sizeof *rejection + extra, sizeof rejection_bytes), Promise::GROWING,
            "compile wrote beyond the struct_size of its rejection");
    c.check(info->struct_size == info_size, Promise::SIZED, "compile changed the struct_size of its info");
  }
}

// Checks that each optimization level gives the same results.
void optimization_levels(Contract& c) {
  const auto instance = open_that_computes(c);
  if (!instance || !instance->executes()) return;
  const std::string body = accepted_sum(*instance);
  if (body.empty()) return;
  const PreparedProgram ready = prepare(*instance, body);
  if (!ready) return;
  for (uint32_t level = 0; level <= 3; ++level) {
    const uint32_t device = 0;
    collet_compile_options options{};
    options.struct_size = sizeof options;
    options.optimization = level;
    options.assignment = &device;
    options.participants = 1;
    options.intermediate_check = level % 2;
    collet_executable_info info{};
    info.struct_size = sizeof info;
    collet_rejection rejection{sizeof(collet_rejection), 0, nullptr};
    collet_backend_executable* handle = nullptr;
    const collet_status status = checked_call(c, "compile", [&](collet_error* error) {
      return instance->table().compile(instance->handle(), ready.program->get(), &options, &handle, &info, &rejection,
                                       error);
    });
    if (!c.check(status == COLLET_OK && handle, Promise::COMPILE, "compile at optimization {} gave status {}", level,
                 status))
      return;
    Executable executable(&instance->table(), handle);
    executable.workspace_bytes = info.workspace_bytes;
    executable.workspace_alignment = info.workspace_alignment;
    GuardedLaunch guarded(*instance, *ready.program, executable, {});
    // Numbers that use all digits of a float: whole ones have the same results in a shorter type.
    std::vector<hlo::Literal> inputs = ready.program->draw(level + 1);
    for (hlo::Literal& value : inputs)
      for (int64_t i = 0; hlo::is_float(value.shape().type()) && i < value.element_count(); ++i)
        value.set_double(i, value.as_double(i) / 7 + static_cast<double>(i) / 911);
    if (!guarded.run_with(inputs, level + 1, fmt::format("at optimization {}", level))) return;
  }
}

// A change to a program after which compile must refuse it: a reserved field or flag that is not zero.
struct Foreign {
  const char* name;
  std::function<void(collet_program*)> change;
};

template <typename T>
T* element(collet_program* program, const collet_array& array, uint32_t index) {
  return const_cast<T*>(static_cast<const T*>(collet_array_at(program, array, index)));
}

void reserved_fields(Contract& c) {
  const auto instance = open_that_computes(c);
  if (!instance) return;
  const std::string body = accepted_sum(*instance);
  if (body.empty()) return;
  const auto program = TestProgram::make(body);
  const Foreign all[] = {
      {"the flags of the program", [](collet_program* p) { p->flags = 1; }},
      {"the flags of an op", [](collet_program* p) { element<collet_op>(p, p->ops, 0)->flags = 1; }},
      {"the reserved field of an op", [](collet_program* p) { element<collet_op>(p, p->ops, 0)->reserved = 1; }},
  };
  for (const Foreign& foreign : all) {
    hlo::Block block((*program)->bytes().data(), (*program)->bytes().size());
    auto* changed = reinterpret_cast<collet_program*>(block.data());
    foreign.change(changed);
    const CompileResult made = compile(*instance, changed);
    c.check(made.status != COLLET_OK, Promise::RESERVED, "compile took a program in which {} {} not zero", foreign.name,
            std::strstr(foreign.name, "flags") ? "are" : "is");
    if (made.status == COLLET_OK || !instance->executes()) continue;
    // After a refusal the next program must compile as usual.
    const CompileResult next = compile(*instance, (*program)->get());
    if (!c.check(next.status == COLLET_OK, Promise::ERROR_CHANGES_NOTHING, "after a refused program, compile gave {}",
                 next.message))
      return;
    GuardedLaunch guarded(*instance, **program, next.executable, {});
    if (!guarded.run(1, std::string("compiled after a program was refused for ") + foreign.name,
                     {.kind = Bound::Kind::Ulp, .ulps = 64}))
      return;
  }
}

void newer_ops(Contract& c) {
  const auto instance = open_that_computes(c);
  if (!instance) return;
  if (!c.holds(Promise::NEWER_DECLINED)) return c.skip("the backend's version of the ABI does not say");
  const std::string body = accepted_sum(*instance);
  if (body.empty()) return;
  const auto program = TestProgram::make(body);
  hlo::Block block((*program)->bytes().data(), (*program)->bytes().size());
  auto* changed = reinterpret_cast<collet_program*>(block.data());
  element<collet_op>(changed, changed->ops, 0)->since = instance->opset() + 1;
  changed->opset = instance->opset() + 1;
  collet_verdict verdict{};
  const uint32_t op = 0;
  const collet_status status = checked_call(c, "supports", [&](collet_error* error) {
    return instance->table().supports(instance->handle(), 0, changed, &op, 1, &verdict, error);
  });
  c.check(status != COLLET_OK || verdict.answer != COLLET_ACCEPT, Promise::NEWER_DECLINED,
          "supports accepts an op of opset {}, and open stated opset {}", instance->opset() + 1, instance->opset());
}

void opset_is_known(Contract& c) {
  const auto instance = Instance::open(c);
  if (!instance) return;
  c.check(instance->opset() >= 1, Promise::OPSET, "open stated the opset {}", instance->opset());
}

void from_threads(Contract& c) {
  const auto instance = open_that_computes(c);
  if (!instance) return;
  for (const Device& device : instance->devices())
    if (device.has(COLLET_TRAIT_SERIAL) || device.has(COLLET_TRAIT_SERIAL_COMPILE))
      return c.skip("the device compiles one program at a time");
  const auto programs = all_programs();
  std::vector<std::vector<collet_verdict>> first(programs.size());
  for (size_t i = 0; i < programs.size(); ++i)
    if (!ask(*instance, programs[i].second->get(), entry_ops(programs[i].second->get()), first[i])) return;
  on_threads(3, [&](int thread) {
    for (size_t step = 0; step < programs.size(); ++step) {
      const size_t i = (step + static_cast<size_t>(thread) * 11) % programs.size();
      const collet_program* program = programs[i].second->get();
      std::vector<collet_verdict> again;
      if (!ask(*instance, program, entry_ops(program), again)) return;
      for (size_t at = 0; at < again.size(); ++at)
        if (!c.check(again[at].answer == first[i][at].answer, Promise::THREADS,
                     "with three threads asking, supports answered {} for op {} of {} and {} before", again[at].answer,
                     at, programs[i].first, first[i][at].answer))
          return;
      if (step % 8 != 0 || !accepts(*instance, program)) continue;
      const CompileResult made = compile(*instance, program);
      if (made.status != COLLET_OK) continue;  // another case checks that
      if (!instance->executes()) continue;
      GuardedLaunch guarded(*instance, *programs[i].second, made.executable, {});
      if (!guarded.run(step + 1, "compiled beside others: " + programs[i].first,
                       {.kind = Bound::Kind::Ulp, .ulps = 64}))
        return;
    }
  });
}

// Compiles programs of equal size in several threads, to find compilers that keep a program in a global variable.
void alike_from_threads(Contract& c) {
  const auto instance = open_that_computes(c);
  if (!instance) return;
  for (const Device& device : instance->devices())
    if (device.has(COLLET_TRAIT_SERIAL) || device.has(COLLET_TRAIT_SERIAL_COMPILE))
      return c.skip("the device compiles one program at a time");
  if (!instance->executes()) return c.skip("the device runs no programs");
  const auto programs = all_programs();
  std::map<uint64_t, std::vector<size_t>> by_size;
  for (size_t i = 0; i < programs.size(); ++i)
    if (accepts(*instance, programs[i].second->get())) by_size[programs[i].second->get()->total_bytes].push_back(i);
  const auto most = std::max_element(by_size.begin(), by_size.end(),
                                     [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
  if (most == by_size.end() || most->second.size() < 2) return c.skip("it takes no two programs of one size");
  const std::vector<size_t>& alike = most->second;
  on_threads(4, [&](int thread) {
    for (size_t round = 0; round < 8; ++round) {
      const auto& [name, program] = programs[alike[(round + static_cast<size_t>(thread)) % alike.size()]];
      const CompileResult made = compile(*instance, program->get());
      if (made.status != COLLET_OK) continue;  // another case judges that
      GuardedLaunch guarded(*instance, *program, made.executable, {});
      if (!guarded.run(round + 1, "compiled at the same time as others of its size: " + name,
                       {.kind = Bound::Kind::Ulp, .ulps = 64}))
        return;
    }
  });
}

}  // namespace

void add_compile_contracts(std::vector<ContractCase>& list) {
  list.push_back({"compile/opset", opset_is_known});
  list.push_back({"compile/supports_is_pure", supports_is_pure});
  list.push_back({"compile/supports_reads_the_block_alone", supports_reads_the_block_alone});
  list.push_back({"compile/yes_compiles", yes_compiles});
  list.push_back({"compile/yes_compiles_all_shapes", yes_compiles_all_shapes});
  list.push_back({"compile/rejection_room", rejection_room});
  list.push_back({"compile/facts", facts});
  list.push_back({"compile/keeps_no_pointer", compile_keeps_no_pointer});
  list.push_back({"compile/progress", progress});
  list.push_back({"compile/cancelled", cancelled});
  list.push_back({"compile/sizes", sizes_of_compile});
  list.push_back({"compile/optimization_levels", optimization_levels});
  list.push_back({"compile/reserved_fields", reserved_fields});
  list.push_back({"compile/newer_ops", newer_ops});
  list.push_back({"compile/threads", from_threads});
  list.push_back({"compile/alike_from_threads", alike_from_threads});
}

}  // namespace collet::conformance
