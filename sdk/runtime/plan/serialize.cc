// SPDX-License-Identifier: Apache-2.0
#include "sdk/runtime/plan/serialize.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "hlo/base/secret_key.h"
#include "hlo/text/printer.h"
#include "sdk/runtime/module.h"
#include "sdk/runtime/plan/compiler.h"

namespace collet::runtime {
namespace {

constexpr char kMagic[8] = {'C', 'L', 'T', 'E', 'X', 'E', 'C', '\n'};
// Form 4 lacks ignore_costs and own_results.
constexpr uint32_t kVersion = 5, kOldestVersion = 4;
constexpr uint32_t kMostDevices = 1 << 16;

struct Head {
  char magic[8];
  uint32_t version;
  uint32_t reserved;  // zero
  uint64_t size;      // bytes of the following data
  hlo::ContentId content;
};

// Writes fields one after another; Reader reads them in the same order.
class Writer {
 public:
  void number(uint32_t n) { out_.append(reinterpret_cast<const char*>(&n), sizeof n); }
  void text(std::string_view s) {
    const uint64_t size = s.size();
    out_.append(reinterpret_cast<const char*>(&size), sizeof size);
    out_ += s;
  }
  void raw(std::string_view s) { out_ += s; }
  void id(const hlo::ContentId& id) { out_.append(reinterpret_cast<const char*>(&id), sizeof id); }
  const std::string& bytes() const { return out_; }

 private:
  std::string out_;
};

// Reads fields. After the end all values are zero and empty, and ok() is false.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}

  uint32_t number() {
    uint32_t n = 0;
    take(&n, sizeof n);
    return n;
  }
  std::string_view text() {
    uint64_t size = 0;
    take(&size, sizeof size);
    if (size > rest_.size()) {
      ok_ = false;
      return {};
    }
    const std::string_view out = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return out;
  }
  hlo::ContentId id() {
    hlo::ContentId id;
    take(&id, sizeof id);
    return id;
  }
  bool ok() const { return ok_; }
  bool at_end() const { return rest_.empty(); }
  std::string_view rest() const { return rest_; }

 private:
  void take(void* out, size_t n) {
    if (n > rest_.size()) {
      ok_ = false;
      rest_ = {};
      return;
    }
    std::memcpy(out, rest_.data(), n);
    rest_.remove_prefix(n);
  }

  std::string_view rest_;
  bool ok_ = true;
};

// Returns the device of each participant, numbered over all processes.
std::vector<uint32_t> assignment_of(const Executable& executable) {
  const ExecutableCore& core = executable.core();
  if (core.across) return core.across->assignment;
  std::vector<uint32_t> out = core.devices;
  if (const Processes* const processes = executable.client().processes()) {
    const auto all = processes->devices();
    for (uint32_t& device : out)
      device = static_cast<uint32_t>(std::find_if(all.begin(), all.end(),
                                                  [&](const GlobalDevice& one) {
                                                    return one.process == processes->rank() && one.device == device;
                                                  }) -
                                     all.begin());
  }
  return out;
}

void write_parts(const Executable& executable, Writer& out) {
  std::set<const CompiledProgram*> seen;
  std::vector<std::pair<hlo::ContentId, std::string>> parts;
  for (const CompiledCluster& unit : executable.core().plan.units)
    for (const CompiledCluster::Local& local : unit.locals) {
      if (!seen.insert(local.program.get()).second) continue;
      std::string bytes = local.program->backend().serialize(local.program->handle());
      if (!bytes.empty()) parts.emplace_back(local.program->key(), std::move(bytes));
    }
  out.number(static_cast<uint32_t>(parts.size()));
  for (const auto& [key, bytes] : parts) {
    out.id(key);
    out.text(bytes);
  }
}

Status damaged(const std::string& how) {
  return Status(Code::DataLoss, "these bytes are no executable, or a damaged one: " + how);
}

Expected<std::string_view> body_of(std::string_view bytes, Head& head) {
  if (bytes.size() < sizeof head) return damaged("they are too short");
  std::memcpy(&head, bytes.data(), sizeof head);
  bytes.remove_prefix(sizeof head);
  if (std::memcmp(head.magic, kMagic, sizeof kMagic) != 0) return damaged("they begin otherwise");
  if (head.version < kOldestVersion || head.version > kVersion)
    return failed_precondition("the executable is of form " + std::to_string(head.version) + "; this library knows " +
                               std::to_string(kOldestVersion) + " to " + std::to_string(kVersion));
  if (head.reserved || head.size != bytes.size() || !(hlo::content_id(bytes) == head.content))
    return damaged("the checksum is wrong");
  return bytes;
}

constexpr std::string_view kPurpose = "executable";

// Takes the signature from the begin of a body, and checks it.
Status check_signature(std::string_view& body) {
  COLLET_ASSIGN(const SecretKey key, SecretKey::of_environment());
  Reader in(body);
  const std::string_view signature = in.text();
  if (!in.ok()) return damaged("they end too early");
  body = in.rest();
  if (key.accepts(kPurpose, body, signature)) return ok_status();
  return Status(Code::PermissionDenied, signature.empty()
                                            ? "the executable is not signed, and COLLET_KEY_FILE asks for it"
                                            : "the executable is signed with another key than that of COLLET_KEY_FILE");
}

struct Stored {
  std::string_view backend, module;
  uint32_t replicas = 0, partitions = 0, optimization = 0, no_fusion = 0, whole_arrays = 0, ignore_costs = 0,
           own_results = 0;
  std::vector<uint32_t> devices;  // of all processes
  std::vector<uint32_t> places;   // the process of each participant; empty if all are in one
  CompiledParts parts;
};

Status read_body(std::string_view body, uint32_t version, Stored& out) {
  Reader in(body);
  out.backend = in.text();
  out.replicas = in.number();
  out.partitions = in.number();
  out.optimization = in.number();
  out.no_fusion = in.number();
  out.whole_arrays = in.number();
  if (version > 4) {
    out.ignore_costs = in.number();
    out.own_results = in.number();
  }
  const uint32_t devices = in.number();
  if (devices > kMostDevices) return damaged("too many devices");
  for (uint32_t i = 0; i < devices; ++i) out.devices.push_back(in.number());
  const uint32_t places = in.number();
  if (places != 0 && places != devices) return damaged("the processes of some participants are missing");
  for (uint32_t i = 0; i < places; ++i) out.places.push_back(in.number());
  out.module = in.text();
  const uint32_t parts = in.number();
  for (uint32_t i = 0; i < parts && in.ok(); ++i) {
    const hlo::ContentId key = in.id();
    out.parts[key] = in.text();
  }
  if (!in.ok() || !in.at_end()) return damaged("they end too early or too late");
  return ok_status();
}

// Merges the caller's options with those of the original compilation, which are used for everything that the caller
// does not state.
collet_compile_request merged(const Stored& stored, collet_compile_request request) {
  if (!request.replica_count) request.replica_count = stored.replicas;
  if (!request.partition_count) request.partition_count = stored.partitions;
  if (!request.assignment_count && request.replica_count == stored.replicas &&
      request.partition_count == stored.partitions) {
    request.assignment = stored.devices.data();
    request.assignment_count = static_cast<uint32_t>(stored.devices.size());
  }
  if (!request.optimization && !request.optimization_given) {
    request.optimization = stored.optimization;
    request.optimization_given = 1;
  }
  request.no_fusion |= stored.no_fusion;
  request.partition |= stored.whole_arrays;
  request.ignore_costs |= stored.ignore_costs;
  request.own_results |= stored.own_results;
  return request;
}

// All processes must agree where each participant is, so an executable of several processes is loaded where its participants were.
Status check_places(const Client& client, const Stored& stored, const collet_compile_request& request) {
  if (stored.places.empty()) return ok_status();
  const std::set<uint32_t> members(stored.places.begin(), stored.places.end());
  const Processes* const processes = client.processes();
  if (!processes)
    return failed_precondition("the executable runs in " + std::to_string(members.size()) +
                               " processes; this client is one of no group of processes");
  if (request.assignment_count != stored.places.size()) return ok_status();  // the compiler refuses it
  for (size_t i = 0; i < stored.places.size(); ++i) {
    const uint32_t device = request.assignment[i];
    const std::string was = "participant " + std::to_string(i) + " of the executable ran on device " +
                            std::to_string(stored.devices[i]) + " in process " + std::to_string(stored.places[i]);
    if (device >= processes->devices().size())
      return failed_precondition(was + "; there is no device " + std::to_string(device) + " here");
    const uint32_t process = processes->devices()[device].process;
    if (process != stored.places[i])
      return failed_precondition(was + "; device " + std::to_string(device) + " is in " + processes->name(process));
  }
  return ok_status();
}

}  // namespace

Expected<std::string> serialize(const Executable& executable) {
  const ExecutableCore& core = executable.core();
  COLLET_ASSIGN(const SecretKey key, SecretKey::of_environment());
  Writer body;
  body.text(executable.client().backend().name());
  body.number(core.replicas);
  body.number(core.partitions);
  body.number(core.optimization);
  body.number(core.no_fusion);
  body.number(core.whole_arrays);
  body.number(core.ignore_costs);
  body.number(core.own_results);
  const std::vector<uint32_t> devices = assignment_of(executable);
  body.number(static_cast<uint32_t>(devices.size()));
  for (const uint32_t device : devices) body.number(device);
  body.number(core.across ? static_cast<uint32_t>(core.across->place.size()) : 0);
  if (core.across)
    for (const uint32_t process : core.across->place) body.number(process);
  body.text(hlo::print_module(executable.source().module()));
  write_parts(executable, body);
  Writer out;
  out.text(key.sign(kPurpose, body.bytes()));
  out.raw(body.bytes());
  Head head{};
  std::memcpy(head.magic, kMagic, sizeof kMagic);
  head.version = kVersion;
  head.size = out.bytes().size();
  head.content = hlo::content_id(out.bytes());
  return std::string(reinterpret_cast<const char*>(&head), sizeof head) + out.bytes();
}

Expected<Executable*> load(Client& client, std::string_view bytes, const collet_compile_request& request) {
  Head head;
  COLLET_ASSIGN(std::string_view body, body_of(bytes, head));
  COLLET_TRY(check_signature(body));
  Stored stored;
  COLLET_TRY(read_body(body, head.version, stored));
  if (stored.backend != client.backend().name())
    return failed_precondition("the executable was made for the backend '" + std::string(stored.backend) +
                               "'; this client's is '" + client.backend().name() + "'");
  collet_read_options options{};
  options.struct_size = sizeof options;
  options.format = COLLET_FORMAT_HLO_TEXT;
  options.file = "executable";
  std::string messages;
  auto module = read_module(stored.module, options, messages);
  if (!module.ok()) return damaged(module.status().message());
  struct Release {
    void operator()(ProgramModule* m) const { m->release(); }
  };
  const std::unique_ptr<ProgramModule, Release> owner(*module);
  const collet_compile_request whole = merged(stored, request);
  COLLET_TRY(check_places(client, stored, whole));
  return compile(client, **module, whole, &stored.parts);
}

}  // namespace collet::runtime
