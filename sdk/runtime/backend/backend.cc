// SPDX-License-Identifier: Apache-2.0
#include "sdk/runtime/backend/backend.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <utility>

#include "hlo/base/utf8.h"
#include "hlo/patterns/declared_pattern.h"
#include "sdk/runtime/backend/calling.h"
#include "sdk/runtime/trace.h"

namespace collet::runtime {
namespace {

// Limits on what a plugin may report. A larger number is treated as an error of the plugin.
constexpr uint32_t kMostDevices = 4096;
constexpr uint32_t kMostSpaces = 64;
constexpr uint32_t kMostTypes = 1024;
constexpr size_t kLongestString = 4096;
constexpr uint64_t kLargestWorkspace = uint64_t{1} << 48;
constexpr uint64_t kLargestFile = uint64_t{1} << 34;
constexpr uint32_t kMostRejected = 256;
constexpr uint32_t kMostArtifacts = 256;
constexpr uint32_t kMostPatterns = 4096;
constexpr size_t kLongestPattern = size_t{1} << 20;
constexpr uint32_t kMostPeaks = 1024;
constexpr uint32_t kProfileRecords = 256;        ///< number of records read by one call
constexpr uint32_t kMostProfileTurns = 1 << 16;  ///< limit of such calls in one reading

// Size of a table up to a function: what it had when it was introduced. Tables grow at their ends, so older backends have
// shorter ones.
#define COLLET_THROUGH(Table, function) static_cast<uint32_t>(offsetof(Table, function) + sizeof(Table::function))

// False for a type of a newer opset, which no program here has.
bool is_known_type(uint32_t type) {
  return type < COLLET_TYPE_LIMIT && std::string_view(collet_type_name(type)) != "?";
}

Status bad_answer(const std::string& where, const std::string& what) {
  return internal_error(where + ": " + what);
}

Expected<std::string> text(const char* s, const std::string& where, const char* what) {
  if (!s) return bad_answer(where, std::string("no ") + what);
  const size_t n = strnlen(s, kLongestString);
  if (n == kLongestString) return bad_answer(where, std::string("the ") + what + " has no end");
  return std::string(s, n);
}

// Eleven days in ns; larger costs are limited to this, so that sums of costs stay finite.
constexpr double kMostNs = 1e15;

bool sane(double value) {
  return std::isfinite(value) && value >= 0;
}

}  // namespace

Status virtual_device_error(const DeviceFacts& device) {
  return failed_precondition("'" + device.kind +
                             "' is a virtual device: it compiles, and has no memory and runs nothing");
}

std::unique_lock<std::mutex> Backend::lock_all() {
  return serial_ ? std::unique_lock(all_) : std::unique_lock<std::mutex>();
}

template <typename Table>
std::optional<Table> Backend::query(const char* name, uint32_t least) {
  if (!library_->table.query) return std::nullopt;
  const auto lock = lock_all();
  const Calling calling("query", library_->path);
  const void* table = library_->table.query(instance_, name, 1);
  if (!table) return std::nullopt;
  uint32_t size;
  std::memcpy(&size, table, sizeof size);
  if (size < least) return std::nullopt;
  Table out{};
  std::memcpy(&out, table, std::min<size_t>(size, sizeof out));
  return out;
}

std::unique_lock<std::mutex> Backend::lock_compile() {
  return serial_compile_ ? std::unique_lock(compile_) : std::unique_lock<std::mutex>();
}

Expected<std::shared_ptr<Backend>> Backend::open(std::string_view name_or_path, const BackendOptions& options) {
  COLLET_ASSIGN(const Library* library, load_library(name_or_path));
  std::shared_ptr<Backend> backend(new Backend);
  backend->library_ = library;
  backend->name_ = name_or_path;
  const std::string where = "backend library '" + library->path + "', open";
  const collet_open_options c_options = {sizeof(collet_open_options),
                                         options.device_count,
                                         options.target,
                                         options.keys,
                                         options.values,
                                         options.pairs,
                                         0};
  collet_instance_info info{};
  info.struct_size = sizeof info;
  collet_error error{};
  collet_backend_instance* instance = nullptr;
  const Calling calling("open", library->path);
  const collet_status code = library->table.open(&c_options, &instance, &info, &error);
  if (code != COLLET_OK) return from_c(code, error, where);
  if (!instance) return bad_answer(where, "no instance");
  backend->instance_ = instance;  // from here on the instance is closed if something fails
  COLLET_TRY(backend->describe(info));
  if (backend->profiles()) add_profiled(*backend);
  return backend;
}

Backend::~Backend() {
  if (instance_ && profiles()) remove_profiled(*this);
  if (!instance_) return;
  const Calling calling("close", library_->path);
  library_->table.close(instance_);
}

Status Backend::describe(const collet_instance_info& info) {
  const std::string where = "backend library '" + library_->path + "', open";
  COLLET_ASSIGN(name_, text(info.name, where, "name"));
  COLLET_ASSIGN(version_, text(info.version, where, "version"));
  if (name_.empty()) return bad_answer(where, "the name is empty");
  if (!is_plain_name(name_))
    return bad_answer(where, "the name " + quoted(std::exchange(name_, "")) +
                                 " is not 1 to 64 lower-case letters, digits, '-', '_' and '.', a letter first");
  opset_ = info.opset;
  if (opset_ == 0) return bad_answer(where, "there is no opset 0");
  if (info.device_count == 0) return not_found(where + ": there is no device");
  if (info.device_count > kMostDevices)
    return bad_answer(where, std::to_string(info.device_count) + " devices cannot be");
  for (uint32_t i = 0; i < info.device_count; ++i) COLLET_TRY(describe_device(i));
  for (const DeviceFacts& d : devices_) {
    serial_ |= d.has(COLLET_TRAIT_SERIAL);
    serial_compile_ |= d.has(COLLET_TRAIT_SERIAL_COMPILE);
    for (uint32_t peer : d.peers)
      if (peer >= devices_.size()) return bad_answer(this->where("device_info"), "names a peer that is not there");
  }
  return describe_tables();
}

Status Backend::describe_tables() {
  const auto lacks = [&](const char* name) {
    return bad_answer(where("query"), std::string("the table \"") + name + "\" lacks a function");
  };
  queues_ = query<collet_queue_table>("queue", COLLET_THROUGH(collet_queue_table, abort));
  if (queues_ && (!queues_->create || !queues_->destroy || !queues_->wait || !queues_->abort)) return lacks("queue");
  layouts_ = query<collet_layout_table>("layout", COLLET_THROUGH(collet_layout_table, convert));
  if (layouts_ && !layouts_->of) return lacks("layout");
  residency_ = query<collet_residency_table>("residency", COLLET_THROUGH(collet_residency_table, prepare));
  if (residency_ && (!residency_->wants || !residency_->prepare)) return lacks("residency");
  memory_stats_ = query<collet_memory_stats_table>("memory_stats", COLLET_THROUGH(collet_memory_stats_table, get));
  if (memory_stats_ && !memory_stats_->get) return lacks("memory_stats");
  patterns_ = query<collet_patterns_table>("patterns", COLLET_THROUGH(collet_patterns_table, name));
  if (patterns_ && !patterns_->name) return lacks("patterns");
  profile_ = query<collet_profile_table>("profile", COLLET_THROUGH(collet_profile_table, read));
  if (profile_ && (!profile_->enable || !profile_->read)) return lacks("profile");
  host_memory_ = query<collet_host_memory_table>("host_memory", COLLET_THROUGH(collet_host_memory_table, remove));
  if (host_memory_ && (!host_memory_->add || !host_memory_->remove)) return lacks("host_memory");
  host_buffers_ = query<collet_host_buffers_table>("host_buffers", COLLET_THROUGH(collet_host_buffers_table, wrap));
  if (host_buffers_ && !host_buffers_->wrap) return lacks("host_buffers");
  links_ = query<collet_links_table>("links", COLLET_THROUGH(collet_links_table, between));
  if (links_ && !links_->between) return lacks("links");
  exchange_ = query<collet_exchange_table>("exchange", COLLET_THROUGH(collet_exchange_table, run));
  if (exchange_ && (!exchange_->takes || !exchange_->run)) return lacks("exchange");
  if (serial_) exchange_.reset();  // an exchange waits for other processes, and several wait at once
  return ok_status();
}

Status Backend::describe_device(uint32_t index) {
  const std::string where = this->where("device_info");
  collet_device_info info{};
  info.struct_size = sizeof info;
  collet_error error{};
  const Calling calling("device_info", library_->path);
  const collet_status code = library_->table.device_info(instance_, index, &info, &error);
  if (code != COLLET_OK) return from_c(code, error, where);
  DeviceFacts d;
  d.traits = info.traits;
  COLLET_ASSIGN(d.kind, text(info.kind, where, "kind"));
  COLLET_ASSIGN(d.fingerprint, text(info.fingerprint, where, "fingerprint"));
  std::copy(std::begin(info.coordinates), std::end(info.coordinates), d.coordinates);
  if (info.space_count == 0 || info.space_count > kMostSpaces || !info.spaces)
    return bad_answer(where, std::to_string(info.space_count) + " memory spaces cannot be");
  d.spaces.assign(info.spaces, info.spaces + info.space_count);
  int defaults = 0;
  for (uint32_t i = 0; i < d.spaces.size(); ++i) {
    const collet_memory_space& space = d.spaces[i];
    if (!std::has_single_bit(space.alignment) || space.alignment > (1u << 30))
      return bad_answer(where, "an alignment of " + std::to_string(space.alignment) + " cannot be");
    if (strnlen(space.kind, sizeof space.kind) == sizeof space.kind)
      return bad_answer(where, "the kind of a memory space has no end");
    if (!(space.flags & COLLET_SPACE_DEFAULT)) continue;
    d.default_space = i;
    ++defaults;
  }
  if (defaults != 1) return bad_answer(where, "exactly one memory space must be the default one");
  if (info.type_count > kMostTypes || (info.type_count && !info.types))
    return bad_answer(where, std::to_string(info.type_count) + " element types cannot be");
  for (uint32_t i = 0; i < info.type_count; ++i)
    if (is_known_type(info.types[i].type)) d.type_flags[info.types[i].type] |= info.types[i].flags;
  if (info.peer_count > kMostDevices || (info.peer_count && !info.peers))
    return bad_answer(where, std::to_string(info.peer_count) + " peers cannot be");
  if (info.peer_count) d.peers.assign(info.peers, info.peers + info.peer_count);
  d.compute_units = info.compute_units;
  for (double v :
       {info.link_latency_ns, info.link_bytes_per_ns, info.launch_ns, info.memory_bytes_per_ns, info.flops_per_ns})
    if (!sane(v)) return bad_answer(where, "a speed or latency that is no positive number");
  d.link_latency_ns = std::min(info.link_latency_ns, kMostNs);
  d.link_bytes_per_ns = info.link_bytes_per_ns;
  d.launch_ns = std::min(info.launch_ns, kMostNs);
  d.memory_bytes_per_ns = info.memory_bytes_per_ns;
  d.flops_per_ns = info.flops_per_ns;
  d.smallest_cluster = info.smallest_cluster;
  if (info.peak_count > kMostPeaks || (info.peak_count && !info.peaks))
    return bad_answer(where, std::to_string(info.peak_count) + " peaks cannot be");
  for (uint32_t i = 0; i < info.peak_count; ++i) {
    if (!sane(info.peaks[i].per_ns) || info.peaks[i].per_ns == 0)
      return bad_answer(where, "a peak that is no positive number");
    d.peaks.push_back(info.peaks[i]);
  }
  devices_.push_back(std::move(d));
  return ok_status();
}

Expected<Backend::Allocation> Backend::alloc(uint32_t device, uint32_t space, uint64_t bytes, uint64_t alignment) {
  Allocation out;
  collet_error error{};
  collet_status code;
  {
    const auto lock = lock_all();
    const Calling calling("alloc", library_->path);
    code = library_->table.alloc(instance_, device, space, bytes, alignment, &out.buffer, &out.host, &error);
  }
  if (code != COLLET_OK) return from_c(code, error, where("alloc"));
  if (!out.buffer) return bad_answer(where("alloc"), "succeeded without a buffer");
  if (!(devices_[device].spaces[space].flags & COLLET_SPACE_HOST_VISIBLE)) {
    out.host = nullptr;
  } else if (!out.host) {
    free(out.buffer);
    return bad_answer(where("alloc"), "a host-visible space gave no host pointer");
  } else if (reinterpret_cast<uintptr_t>(out.host) % devices_[device].spaces[space].alignment != 0) {
    free(out.buffer);
    return bad_answer(where("alloc"), "a host pointer without the alignment of its space");
  }
  return out;
}

Expected<collet_backend_buffer*> Backend::wrap(uint32_t device, uint32_t space, const void* host, uint64_t bytes) {
  if (!host_buffers_) return unimplemented("backend '" + name_ + "' has no table \"host_buffers\"");
  collet_backend_buffer* out = nullptr;
  collet_error error{};
  const auto lock = lock_all();
  const Calling calling("host_buffers.wrap", library_->path);
  const collet_status code = host_buffers_->wrap(instance_, device, space, host, bytes, &out, &error);
  if (code != COLLET_OK) return from_c(code, error, where("wrap"));
  if (!out) return bad_answer(where("wrap"), "succeeded without a buffer");
  return out;
}

void Backend::free(collet_backend_buffer* buffer) {
  const auto lock = lock_all();
  const Calling calling("free", library_->path);
  library_->table.free(instance_, buffer);
}

Status Backend::copy(std::span<const collet_copy_region> regions, const collet_sync* sync) {
  Span span(COLLET_SPAN_COPY, regions.empty() || !regions[0].from.buffer ? "copy to device"
                              : regions[0].to.buffer                     ? "copy"
                                                                         : "copy to host");
  for (const collet_copy_region& region : regions) span.facts().bytes += region.bytes;
  collet_error error{};
  const auto lock = lock_all();
  const Calling calling("copy", library_->path);
  const collet_status code =
      library_->table.copy(instance_, regions.data(), static_cast<uint32_t>(regions.size()), sync, &error);
  if (code == COLLET_OK) return Status();
  return from_c(code, error, where("copy"));
}

Expected<collet_backend_queue*> Backend::create_queue(uint32_t device, uint32_t kind) {
  collet_error error{};
  collet_backend_queue* queue = nullptr;
  const auto lock = lock_all();
  const Calling calling("queue.create", library_->path);
  const collet_status code = queues_->create(instance_, device, kind, &queue, &error);
  if (code != COLLET_OK) return from_c(code, error, where("create of a queue"));
  if (!queue) return bad_answer(where("create of a queue"), "succeeded without a queue");
  return queue;
}

void Backend::destroy_queue(collet_backend_queue* queue) {
  const auto lock = lock_all();
  const Calling calling("queue.destroy", library_->path);
  queues_->destroy(queue);
}

Status Backend::supports(uint32_t device, const collet_program* program, std::span<const uint32_t> ops,
                         std::span<collet_verdict> verdicts) {
  std::fill(verdicts.begin(), verdicts.end(), collet_verdict{});
  if (!library_->table.supports || ops.empty()) return ok_status();
  collet_error error{};
  collet_status code;
  {
    const auto serial = lock_compile();
    const auto lock = lock_all();
    const Calling calling("supports", library_->path);
    code = library_->table.supports(instance_, device, program, ops.data(), static_cast<uint32_t>(ops.size()),
                                    verdicts.data(), &error);
  }
  if (code != COLLET_OK) return from_c(code, error, where("supports"));
  for (collet_verdict& v : verdicts) {
    if (v.answer > COLLET_EXPAND)
      return bad_answer(where("supports"), "the answer " + std::to_string(v.answer) + " is unknown");
    if (!sane(v.cost_ns)) return bad_answer(where("supports"), "a cost that is no positive number");
    v.cost_ns = std::min(v.cost_ns, kMostNs);
    v.reason[sizeof v.reason - 1] = 0;
  }
  return ok_status();
}

Expected<CompiledFacts> Backend::check_compiled(const collet_program* program, const collet_executable_info& info,
                                                std::vector<uint32_t> absorbed) const {
  const std::string where = this->where("compile");
  CompiledFacts facts;
  if (info.absorbed_count > absorbed.size()) return bad_answer(where, "absorbed more constants than there are");
  absorbed.resize(info.absorbed_count);
  for (uint32_t c : absorbed)
    if (c >= program->constants.count) return bad_answer(where, "absorbed a constant that is not there");
  if (info.workspace_alignment && !std::has_single_bit(info.workspace_alignment))
    return bad_answer(where, "an alignment of " + std::to_string(info.workspace_alignment) + " cannot be");
  if (info.workspace_bytes > kLargestWorkspace)
    return bad_answer(where, "a workspace of " + std::to_string(info.workspace_bytes) + " bytes cannot be");
  facts.workspace_bytes = info.workspace_bytes;
  facts.workspace_alignment = info.workspace_alignment;
  facts.resident_bytes = info.resident_bytes;
  facts.code_bytes = info.code_bytes;
  facts.traffic_bytes = info.traffic_bytes;
  if (!sane(info.estimated_ns) || !sane(info.energy_nj))
    return bad_answer(where, "an estimate of time or energy that is no positive number");
  facts.estimated_ns = std::min(info.estimated_ns, kMostNs);
  facts.energy_nj = info.energy_nj;
  facts.cycles = info.cycles;
  facts.kernels = info.kernels;
  facts.absorbed = std::move(absorbed);
  return facts;
}

Expected<collet_backend_executable*> Backend::compile(const collet_program* program,
                                                      const collet_compile_options& options, CompiledFacts& facts,
                                                      std::vector<uint32_t>& rejected) {
  std::vector<uint32_t> absorbed(program->constants.count, COLLET_NONE);
  collet_executable_info info{};
  info.struct_size = sizeof info;
  info.absorbed_count = static_cast<uint32_t>(absorbed.size());
  info.absorbed = absorbed.data();
  rejected.assign(kMostRejected, COLLET_NONE);
  collet_rejection rejection{sizeof(collet_rejection), kMostRejected, rejected.data()};
  collet_error error{};
  collet_backend_executable* executable = nullptr;
  collet_status code;
  {
    const auto serial = lock_compile();
    const auto lock = lock_all();
    const Calling calling("compile", library_->path);
    code = library_->table.compile(instance_, program, &options, &executable, &info, &rejection, &error);
  }
  if (code != COLLET_OK) {
    rejected.resize(std::min(rejection.count, kMostRejected));
    std::erase_if(rejected, [&](uint32_t op) { return op >= program->ops.count; });
    return from_c(code, error, where("compile"));
  }
  rejected.clear();
  return accept(program, executable, info, std::move(absorbed), facts, "compile");
}

Expected<collet_backend_executable*> Backend::accept(const collet_program* program,
                                                     collet_backend_executable* executable, collet_executable_info info,
                                                     std::vector<uint32_t> absorbed, CompiledFacts& facts,
                                                     const char* function) {
  if (!executable) return bad_answer(where(function), "succeeded without an executable");
  // A backend that did not change the count absorbed nothing.
  if (info.absorbed_count == absorbed.size() && !absorbed.empty() && absorbed[0] == COLLET_NONE)
    info.absorbed_count = 0;
  auto checked = check_compiled(program, info, std::move(absorbed));
  if (!checked.ok()) {
    release(executable);
    return checked.status();
  }
  facts = *std::move(checked);
  if (Status status = ask_layouts(program, executable, facts); !status.ok()) {
    release(executable);
    return status;
  }
  return executable;
}

// Asks the optional tables about layouts and residency of the executable's arguments and results.
Status Backend::ask_layouts(const collet_program* program, collet_backend_executable* executable,
                            CompiledFacts& facts) {
  if (!layouts_ && !residency_) return ok_status();
  const collet_region* entry = collet_region_at(program, 0);
  const auto lock = lock_all();
  const auto all = [&](uint32_t is_result, uint32_t count, std::vector<const Layout*>& out) -> Status {
    std::vector<const Layout*> layouts;
    for (uint32_t i = 0; i < count; ++i) {
      const uint32_t value = is_result ? collet_ref_at(program, entry->results.first + i) : entry->arguments.first + i;
      const collet_type* t = collet_value_type(program, value);
      collet_layout layout{};
      collet_error error{};
      const Calling calling("layouts.of", library_->path);
      const collet_status code = layouts_->of(executable, is_result, i, &layout, &error);
      if (code != COLLET_OK) return from_c(code, error, where("layout"));
      const Layout* known = nullptr;
      if (t->elements && t->bytes) {
        COLLET_ASSIGN(const ArrayType* type,
                      array_type(t->element, {collet_integers(program, t->dims), t->dims.count}));
        auto made = intern_layout(type, layout);
        if (!made.ok()) return made.status().with_prefix(where("layout") + ": ");
        known = *made;
      }
      if (known && !is_result && (collet_value_at(program, value)->flags & COLLET_VALUE_CONSTANT))
        return bad_answer(where("layout"), "a constant has a layout");
      layouts.push_back(known);
    }
    if (std::any_of(layouts.begin(), layouts.end(), [](const Layout* l) { return l != nullptr; })) out = layouts;
    return ok_status();
  };
  if (layouts_) {
    COLLET_TRY(all(0, entry->arguments.count, facts.argument_layouts));
    COLLET_TRY(all(1, entry->results.count, facts.result_layouts));
    for (uint32_t i = 0; i < program->aliases.count; ++i) {
      const collet_alias* alias = collet_alias_at(program, i);
      if (facts.argument_layout(alias->argument) != facts.result_layout(alias->result))
        return bad_answer(where("layout"), "a result has another layout than the argument whose memory it takes over");
    }
  }
  if (!residency_) return ok_status();
  for (uint32_t i = 0; i < entry->arguments.count; ++i) {
    const uint32_t flags = collet_value_at(program, entry->arguments.first + i)->flags;
    const Calling calling("residency.wants", library_->path);
    const bool wants = !(flags & (COLLET_VALUE_CONSTANT | COLLET_VALUE_SCALAR)) && residency_->wants(executable, i);
    if (wants) facts.wants_prepared.resize(entry->arguments.count);
    if (wants) facts.wants_prepared[i] = 1;
  }
  return ok_status();
}

Status Backend::convert(uint32_t device, const ArrayType& type, const collet_place& from, const Layout* from_layout,
                        const collet_place& to, const Layout* to_layout, const collet_sync* sync) {
  static constexpr collet_layout kDense{};
  collet_error error{};
  const auto lock = lock_all();
  const Calling calling("layouts.convert", library_->path);
  const collet_status code = layouts_->convert(instance_, device, type.element, static_cast<uint32_t>(type.dims.size()),
                                               type.dims.data(), &from, from_layout ? &from_layout->c : &kDense, &to,
                                               to_layout ? &to_layout->c : &kDense, sync, &error);
  return code == COLLET_OK ? Status() : from_c(code, error, where("convert"));
}

Expected<collet_backend_buffer*> Backend::prepare(collet_backend_executable* executable, uint32_t device,
                                                  uint32_t index, const collet_argument& value) {
  collet_error error{};
  collet_backend_buffer* out = nullptr;
  const auto lock = lock_all();
  const Calling calling("residency.prepare", library_->path);
  const collet_status code = residency_->prepare(executable, device, index, &value, &out, &error);
  if (code != COLLET_OK) return from_c(code, error, where("prepare"));
  if (!out) return bad_answer(where("prepare"), "succeeded without a buffer");
  return out;
}

const std::vector<Backend::Pattern>& Backend::patterns(uint32_t device) {
  const std::lock_guard asked(asked_);
  const auto [known, is_new] = patterns_of_.try_emplace(device);
  std::vector<Pattern>& out = known->second;
  if (!is_new || !patterns_) return out;
  {
    const auto lock = lock_all();
    for (uint32_t i = 0; i < kMostPatterns; ++i) {
      const Calling calling("patterns.name", library_->path);
      const char* name = patterns_->name(instance_, device, i);
      if (!name) break;
      out.push_back({std::string(name, strnlen(name, kLongestString)), "", nullptr, 0});
      const Calling calling_text("patterns.text", library_->path);
      const char* text = patterns_->text ? patterns_->text(instance_, device, i) : nullptr;
      if (text) out.back().text.assign(text, strnlen(text, kLongestPattern));
      const Calling calling_features("patterns.features", library_->path);
      if (patterns_->features) out.back().features = patterns_->features(instance_, device, i);
    }
  }
  for (Pattern& one : out) {
    if (one.text.empty()) continue;
    auto read = hlo::patterns::DeclaredPattern::read(one.text);
    Status status = read.status();
    if (status.ok() && (*read)->name() != one.name)
      status = invalid_argument("the text is that of '" + std::string((*read)->name()) + "'");
    if (status.ok())
      one.matcher = *std::move(read);
    else
      log_message(COLLET_LOG_WARNING,
                  where("patterns.text") + ", pattern '" + one.name + "', which is left out: " + status.message());
  }
  return out;
}

std::optional<collet_memory_stats> Backend::memory_stats(uint32_t device, uint32_t space) {
  if (!memory_stats_) return std::nullopt;
  collet_memory_stats stats{};
  stats.struct_size = sizeof stats;
  collet_error error{};
  const auto lock = lock_all();
  const Calling calling("memory_stats.get", library_->path);
  if (memory_stats_->get(instance_, device, space, &stats, &error) != COLLET_OK) return std::nullopt;
  return stats;
}

void Backend::record_profile(bool on) {
  for (uint32_t device = 0; device < devices_.size(); ++device) {
    collet_error error{};
    const auto lock = lock_all();
    const Calling calling("profile.enable", library_->path);
    const collet_status code = profile_->enable(instance_, device, on ? 1 : 0, &error);
    if (code != COLLET_OK) log_message(COLLET_LOG_WARNING, from_c(code, error, where("enable")).to_string());
  }
}

void Backend::read_profile(uint32_t device, const std::function<void(const collet_profile_record&)>& each) {
  std::vector<collet_profile_record> records(kProfileRecords);
  for (uint32_t turn = 0; turn < kMostProfileTurns; ++turn) {
    uint32_t count = 0;
    collet_error error{};
    {
      const auto lock = lock_all();
      const Calling calling("profile.read", library_->path);
      const collet_status code = profile_->read(instance_, device, records.data(), kProfileRecords, &count, &error);
      if (code != COLLET_OK) return log_message(COLLET_LOG_WARNING, from_c(code, error, where("read")).to_string());
    }
    if (count > kProfileRecords)
      return log_message(COLLET_LOG_WARNING,
                         bad_answer(where("read"), "more records than there was room for").to_string());
    for (uint32_t i = 0; i < count; ++i) {
      records[i].name[sizeof records[i].name - 1] = 0;
      records[i].engine[sizeof records[i].engine - 1] = 0;
      each(records[i]);
    }
    if (count == 0) return;
  }
}

Status Backend::add_host_memory(void* host, uint64_t bytes) {
  if (!host_memory_) return unimplemented("backend '" + name_ + "' has no table \"host_memory\"");
  collet_error error{};
  const auto lock = lock_all();
  const Calling calling("host_memory.add", library_->path);
  const collet_status code = host_memory_->add(instance_, host, bytes, &error);
  return code == COLLET_OK ? ok_status() : from_c(code, error, where("add"));
}

Status Backend::remove_host_memory(void* host) {
  if (!host_memory_) return unimplemented("backend '" + name_ + "' has no table \"host_memory\"");
  collet_error error{};
  const auto lock = lock_all();
  const Calling calling("host_memory.remove", library_->path);
  const collet_status code = host_memory_->remove(instance_, host, &error);
  return code == COLLET_OK ? ok_status() : from_c(code, error, where("remove"));
}

Expected<collet_link> Backend::link(uint32_t from, uint32_t to) {
  collet_link link{};
  link.struct_size = sizeof link;
  if (!links_) return link;
  collet_error error{};
  const auto lock = lock_all();
  const Calling calling("links.between", library_->path);
  const collet_status code = links_->between(instance_, from, to, &link, &error);
  if (code != COLLET_OK) return from_c(code, error, where("between"));
  if (!sane(link.latency_ns) || !sane(link.bytes_per_ns))
    return bad_answer(where("between"), "a figure that cannot be");
  return link;
}

bool Backend::takes_exchange(const collet_exchange& exchange) {
  const Calling calling("exchange.takes", library_->path);
  return exchange_->takes(instance_, &exchange) == 1;
}

Status Backend::run_exchange(const collet_exchange& exchange) {
  collet_error error{};
  const Calling calling("exchange.run", library_->path);
  const collet_status code = exchange_->run(instance_, &exchange, &error);
  return code == COLLET_OK ? ok_status() : from_c(code, error, where("exchange"));
}

Status Backend::execute(collet_backend_executable* executable, std::span<const collet_launch> launches,
                        uint64_t run_id) {
  collet_error error;
  error.message[0] = 0;
  const auto lock = lock_all();
  const Calling calling("execute", library_->path);
  const collet_status code =
      library_->table.execute(executable, launches.data(), static_cast<uint32_t>(launches.size()), run_id, &error);
  if (code == COLLET_OK) return Status();
  return from_c(code, error, where("execute"));
}

void Backend::release(collet_backend_executable* executable) {
  const auto lock = lock_all();
  const Calling calling("release", library_->path);
  library_->table.release(executable);
}

std::string Backend::serialize(collet_backend_executable* executable) {
  const auto table = query<collet_aot_table>("aot", COLLET_THROUGH(collet_aot_table, load));
  if (!table || !table->serialize || !table->load) return {};
  collet_error error{};
  uint64_t size = 0;
  const auto lock = lock_all();
  const Calling calling("aot.serialize", library_->path);
  if (table->serialize(executable, nullptr, 0, &size, &error) != COLLET_OK || size == 0 || size > kLargestFile)
    return {};
  std::string out(size, 0);
  uint64_t written = 0;
  if (table->serialize(executable, out.data(), size, &written, &error) != COLLET_OK || written != size) return {};
  return out;
}

Expected<collet_backend_executable*> Backend::load(std::string_view bytes, const collet_program* program,
                                                   const collet_compile_options& options, CompiledFacts& facts) {
  const auto table = query<collet_aot_table>("aot", COLLET_THROUGH(collet_aot_table, load));
  if (!table || !table->load) return unimplemented(where("load") + ": there is no aot table");
  std::vector<uint32_t> absorbed(program->constants.count, COLLET_NONE);
  collet_executable_info info{};
  info.struct_size = sizeof info;
  info.absorbed_count = static_cast<uint32_t>(absorbed.size());
  info.absorbed = absorbed.data();
  collet_error error{};
  collet_backend_executable* executable = nullptr;
  collet_status code;
  {
    const Calling calling("aot.load", library_->path);
    const auto serial = lock_compile();
    const auto lock = lock_all();
    code = table->load(instance_, bytes.data(), bytes.size(), &options, &executable, &info, &error);
  }
  if (code != COLLET_OK) return from_c(code, error, where("load"));
  return accept(program, executable, info, std::move(absorbed), facts, "load");
}

std::vector<Backend::Artifact> Backend::artifacts(collet_backend_executable* executable) {
  std::vector<Artifact> out;
  const auto table = query<collet_artifacts_table>("artifacts", COLLET_THROUGH(collet_artifacts_table, get));
  if (!table || !table->get) return out;
  const auto lock = lock_all();
  for (uint32_t i = 0; i < kMostArtifacts; ++i) {
    collet_error error{};
    const char* name = nullptr;
    const void* bytes = nullptr;
    uint64_t size = 0;
    if (table->get(executable, i, &name, &bytes, &size, &error) != COLLET_OK || !name || (!bytes && size)) break;
    if (size > kLargestFile) continue;
    out.push_back({std::string(name, strnlen(name, 256)), std::string(static_cast<const char*>(bytes), size)});
  }
  return out;
}

}  // namespace collet::runtime
