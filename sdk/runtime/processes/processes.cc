// SPDX-License-Identifier: Apache-2.0
#include "sdk/runtime/processes/processes.h"

#include <collet/collet.h>
#include <collet/hash.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <utility>

#include "sdk/runtime/backend/calling.h"
#include "sdk/runtime/processes/transport.h"

namespace collet::runtime {
namespace {

constexpr uint32_t kMostProcesses = 4096;
constexpr uint32_t kMostDevices = 65536;  // of one process
constexpr int kProtocol = 2;              // of the messages between processes: those of another number do not meet
constexpr int kMostGroups = 1000;         // that use one store one after another
// After its limit, a process waits for the notices of the others for a quarter of the limit, but within these bounds.
constexpr uint32_t kLeastAskMs = 200;
constexpr uint32_t kMostAskMs = 10'000;
// How many notices a process sends while it is in a group, the last of them when it gives up.
constexpr uint32_t kMostNotices = 8;
constexpr uint32_t kNobody = UINT32_MAX;  // in a notice: its sender does not wait any more

// Appends and reads numbers, and texts after their lengths.
void put(std::string& out, uint64_t number) {
  out.append(reinterpret_cast<const char*>(&number), sizeof number);
}
void put(std::string& out, std::string_view text) {
  put(out, uint64_t{text.size()});
  out += text;
}

bool take(std::string_view& bytes, uint64_t& out) {
  if (bytes.size() < sizeof out) return false;
  std::memcpy(&out, bytes.data(), sizeof out);
  bytes.remove_prefix(sizeof out);
  return true;
}
bool take(std::string_view& bytes, std::string& out) {
  uint64_t size = 0;
  if (!take(bytes, size) || size > bytes.size()) return false;
  out = bytes.substr(0, size);
  bytes.remove_prefix(size);
  return true;
}

std::string host_name() {
  char name[256] = {};
  return gethostname(name, sizeof name - 1) == 0 ? name : "";
}

std::string boot_number() {
  std::string out;
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::getline(file, out);
  return out;
}

// Its address tells where this library is.
void own_place() {}

using Clock = std::chrono::steady_clock;

uint32_t ask_ms(uint32_t timeout_ms) {
  return std::clamp(timeout_ms / 4, kLeastAskMs, kMostAskMs);
}

}  // namespace

struct Processes::Pending {
  const std::string* what;
  const Connection::Use* use;
  std::span<const collet_message> receives;
  uint32_t process;  ///< for which the transport waits; it writes this as atomically as it is read
  Clock::time_point limit;
  std::atomic<uint32_t> next = 0;  ///< the message for which it waits
  // Under the mutex of the processes:
  bool is_late = false;  ///< it fails, whatever comes
  bool was_asked = false;
  bool was_told = false;  ///< the others know that it waits
  std::string who;        ///< what ask_who_waits() returned
};

struct Processes::Notice {
  uint32_t is_there;  ///< 1 in a message
  uint32_t process;   ///< for which its sender waits, or kNobody
};

std::string Processes::write(const Process& p) {
  std::string out;
  for (const std::string* text : {&p.library, &p.backend, &p.backend_version, &p.host, &p.boot}) put(out, *text);
  put(out, p.pid);
  put(out, uint64_t{p.has_exchange});
  put(out, uint64_t{p.devices.size()});
  for (const GlobalDevice& d : p.devices) {
    put(out, d.kind);
    for (const int32_t c : d.coordinates) put(out, static_cast<uint64_t>(c));
  }
  return out;
}

Status Processes::read(std::string_view bytes, Process& out) {
  bool good = true;
  for (std::string* text : {&out.library, &out.backend, &out.backend_version, &out.host, &out.boot})
    good = good && take(bytes, *text);
  uint64_t has_exchange = 0, devices = 0;
  good = good && take(bytes, out.pid) && take(bytes, has_exchange) && take(bytes, devices) && devices <= kMostDevices;
  out.has_exchange = has_exchange != 0;
  for (uint64_t i = 0; good && i < devices; ++i) {
    GlobalDevice& d = out.devices.emplace_back();
    d.device = static_cast<uint32_t>(i);
    good = take(bytes, d.kind);
    for (int32_t& c : d.coordinates) {
      uint64_t number = 0;
      good = good && take(bytes, number);
      c = static_cast<int32_t>(number);
    }
  }
  return good && bytes.empty() ? ok_status() : failed_precondition("its description in the store cannot be read");
}

Expected<std::unique_ptr<Processes>> Processes::join(const Backend& backend, const collet_processes& group) {
  if (group.size == 0 || group.size > kMostProcesses || group.rank >= group.size)
    return invalid_argument("process " + std::to_string(group.rank) + " of " + std::to_string(group.size) +
                            " processes");
  if (!group.store || !group.store->put || !group.store->get)
    return invalid_argument("several processes need a store with put and get to find each other");
  std::unique_ptr<Processes> out(new Processes);
  out->rank_ = group.rank;
  COLLET_ASSIGN(out->timeout_ms_, exchange_timeout_ms(group.timeout_ms));
  std::string prefix;
  COLLET_TRY(out->meet(backend, group, prefix));
  COLLET_TRY(out->check_alike());
  for (uint32_t r = 0; r < out->size(); ++r)
    for (GlobalDevice d : out->processes_[r].devices) {
      d.process = r;
      out->devices_.push_back(std::move(d));
    }
  if (group.size > 1) COLLET_TRY(out->connect(group, prefix));
  return out;
}

// Puts the description of this process into the store and reads the others'.
Status Processes::meet(const Backend& backend, const collet_processes& group, std::string& prefix) {
  processes_.resize(group.size);
  Process& self = processes_[rank_];
  self.host = host_name();
  self.boot = boot_number();
  self.pid = static_cast<uint64_t>(getpid());
  self.library = std::string(COLLET_VERSION_TEXT) + ", protocol " + std::to_string(kProtocol);
  self.backend = backend.name();
  self.backend_version = backend.version();
  self.has_exchange = backend.has_exchange();
  for (const DeviceFacts& facts : backend.devices()) {
    GlobalDevice& d = self.devices.emplace_back();
    d.device = static_cast<uint32_t>(self.devices.size() - 1);
    d.kind = facts.kind;
    std::copy(std::begin(facts.coordinates), std::end(facts.coordinates), d.coordinates);
  }
  const collet_store& store = *group.store;
  const std::string bytes = write(self);
  // The keys of an earlier group that used this store are taken in all of its processes, so all go on to the next number.
  for (int number = 0;; ++number) {
    prefix = "collet/" + std::to_string(number) + "/";
    collet_error error{};
    const collet_status status =
        store.put(store.user, (prefix + std::to_string(rank_)).c_str(), bytes.data(), bytes.size(), &error);
    if (status == COLLET_OK) break;
    if (status != COLLET_ALREADY_EXISTS || number == kMostGroups)
      return from_c(status, error, "the store of the processes, put");
  }
  for (uint32_t r = 0; r < group.size; ++r) {
    if (r == rank_) continue;
    std::string value;
    collet_error error{};
    const auto keep = [](void* out, const void* data, uint64_t size) {
      static_cast<std::string*>(out)->assign(static_cast<const char*>(data), size);
    };
    const collet_status status =
        store.get(store.user, (prefix + std::to_string(r)).c_str(), timeout_ms_, keep, &value, &error);
    const std::string who = "process " + std::to_string(r) + " of " + std::to_string(group.size);
    if (status == COLLET_DEADLINE_EXCEEDED)
      return Status(Code::DeadlineExceeded, who + " has not started within " + std::to_string(timeout_ms_ / 1000.0) +
                                                " s; process " + std::to_string(rank_) + " waits for it");
    if (status != COLLET_OK) return from_c(status, error, who + ", the store, get");
    if (Status read_status = read(value, processes_[r]); !read_status.ok()) return read_status.with_prefix(who + ": ");
  }
  return ok_status();
}

Status Processes::check_alike() const {
  const Process& first = processes_[0];
  for (uint32_t r = 1; r < size(); ++r) {
    const Process& p = processes_[r];
    const auto differ = [&](const char* what, const std::string& one, const std::string& other) {
      return failed_precondition("unlike processes: " + name(r) + " has " + what + " '" + other + "', " + name(0) +
                                 " has '" + one + "'");
    };
    if (p.library != first.library) return differ("Collet", first.library, p.library);
    if (p.backend != first.backend) return differ("the backend", first.backend, p.backend);
    if (p.backend_version != first.backend_version)
      return differ("the backend's version", first.backend_version, p.backend_version);
    for (const GlobalDevice& d : p.devices)
      if (!first.devices.empty() && d.kind != first.devices[0].kind)
        return differ("a device of kind", first.devices[0].kind, d.kind);
  }
  return ok_status();
}

std::string Processes::default_address() const {
  const std::string& boot = processes_[0].boot;
  const bool one_host = !boot.empty() && std::all_of(processes_.begin(), processes_.end(), [&](const Process& p) {
    return p.boot == boot && p.host == processes_[0].host;
  });
  return one_host ? "127.0.0.1" : processes_[rank_].host;
}

// A process that does not connect may wait for another one.
Status Processes::told_by_others(const collet_store& store, const std::string& prefix, const Status& failure) const {
  const auto key = [&](uint32_t process) { return prefix + "failed/" + std::to_string(process); };
  const std::string& own = failure.message();
  collet_error ignored{};
  store.put(store.user, key(rank_).c_str(), own.data(), own.size(), &ignored);
  std::string out = own;
  const auto end = Clock::now() + std::chrono::milliseconds(ask_ms(timeout_ms_));
  for (uint32_t r = 0; r < size(); ++r) {
    if (r == rank_) continue;
    const auto take = [](void* text, const void* data, uint64_t bytes) {
      static_cast<std::string*>(text)->assign(static_cast<const char*>(data), bytes);
    };
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now()).count();
    std::string text;
    const collet_status status =
        store.get(store.user, key(r).c_str(), static_cast<uint32_t>(std::max<int64_t>(left, 1)), take, &text, &ignored);
    if (status == COLLET_OK) out += "; " + name(r) + " says: " + text;
  }
  return Status(failure.code(), out);
}

Status Processes::connect(const collet_processes& group, const std::string& prefix) {
  const std::string transport = transport_name(group.transport);
  const std::string address = chosen(group.address, "COLLET_TRANSPORT_ADDRESS", default_address());
  COLLET_ASSIGN(const Transport loaded, load_transport(transport, reinterpret_cast<const void*>(&own_place)));
  const std::string own_keys = prefix + transport + "/";
  const collet_transport_options options = {
      sizeof(collet_transport_options), rank_, size(), timeout_ms_, group.store, own_keys.c_str(), address.c_str()};
  collet_error error{};
  const Calling calling("transport.open", transport);
  const collet_status status = connection_.open(*loaded.table, options, &error);
  if (status != COLLET_OK)
    return told_by_others(*group.store, prefix,
                          from_c(status, error, "transport '" + transport + "' at '" + address + "', open"));
  watcher_ = std::thread([this] { watch(); });
  // One message from each process says that it has connected to all: before that, none may go on and end.
  std::vector<char> out(size()), in(size());
  std::vector<collet_message> sends, receives;
  for (uint32_t r = 0; r < size(); ++r) {
    if (r == rank_) continue;
    sends.push_back({r, 0, 0, &out[r], 1});
    receives.push_back({r, 0, 0, &in[r], 1});
  }
  const Status joined = exchange(sends, receives, [](uint32_t) { return ok_status(); }, "joining the processes");
  return joined.ok() ? joined : told_by_others(*group.store, prefix, joined);
}

Processes::~Processes() {
  if (watcher_.joinable()) {
    {
      const std::lock_guard lock(mutex_);
      closing_ = true;
    }
    changed_.notify_all();
    watcher_.join();
  }
}

std::string Processes::name(uint32_t process) const {
  const Process& p = processes_[process];
  return "process " + std::to_string(process) + " (host '" + p.host + "', pid " + std::to_string(p.pid) + ")";
}

uint64_t Processes::next_launch(std::span<const uint32_t> processes) {
  const std::lock_guard lock(mutex_);
  return launches_[{processes.begin(), processes.end()}]++;
}

Status Processes::exchange(std::span<const collet_message> sends, std::span<const collet_message> receives,
                           const std::function<Status(uint32_t)>& received, const std::string& what) {
  const Connection::Use use = connection_.use();
  if (!use) return connection_.lost().with_prefix(what + ": the processes lost each other before: ");
  Pending pending;
  pending.what = &what;
  pending.use = &use;
  pending.receives = receives;
  pending.process = rank_;
  pending.limit = Clock::now() + std::chrono::milliseconds(timeout_ms_);
  std::list<Pending*>::iterator place;
  {
    const std::lock_guard lock(mutex_);
    place = pending_.insert(pending_.end(), &pending);
  }
  struct State {
    const std::function<Status(uint32_t)>* received;
    Pending* pending;
    Status outcome;
  } state{&received, &pending, {}};
  const auto forward = [](void* user, uint32_t index) -> int32_t {
    auto& s = *static_cast<State*>(user);
    s.pending->next.store(index + 1, std::memory_order_relaxed);
    s.outcome = (*s.received)(index);
    return s.outcome.ok() ? 0 : 1;
  };
  uint32_t& process = pending.process;
  collet_error error{};
  // The transport's own limit is later than that of watch(), which still needs the connections.
  const auto limit_ms =
      static_cast<uint32_t>(std::min<uint64_t>(uint64_t{timeout_ms_} + 2 * ask_ms(timeout_ms_), UINT32_MAX));
  const collet_status status =
      use->exchange(use.transport(), sends.data(), static_cast<uint32_t>(sends.size()), receives.data(),
                    static_cast<uint32_t>(receives.size()), limit_ms, forward, &state, &process, &error);
  bool late = false;
  uint32_t waited = kMostNotices;  // the number of the notice that it does not wait any more
  {
    std::unique_lock lock(mutex_);
    if (pending.is_late) changed_.wait(lock, [&] { return pending.was_asked; });
    pending_.erase(place);
    if (pending.was_told && !pending.is_late && connection_.lost().ok() && notices_ + 1 < kMostNotices)
      waited = notices_++;
    late = pending.is_late || status == COLLET_DEADLINE_EXCEEDED;
  }
  if (waited < kMostNotices) post_notice(use, waited, kNobody);
  const std::string other = process < size() ? name(process) : "another process";
  Status outcome = state.outcome;
  if (outcome.ok() && late) {
    const std::string why = no_answer(pending.who.empty() ? other : pending.who);
    outcome = Status(Code::DeadlineExceeded, what + ": " + why);
    connection_.leave(outcome, why);
  } else if (outcome.ok() && status != COLLET_OK) {
    std::string why = "lost " + other + ": " + error.message;
    std::vector<uint32_t> all;
    for (uint32_t r = 0; r < size(); ++r)
      if (r != process) all.push_back(r);
    for (const uint32_t r : lost(use, all)) why += "; " + name(r) + " is lost, too";
    outcome = Status(static_cast<Code>(status), what + ": " + why);
    if (status == COLLET_UNAVAILABLE) connection_.leave(outcome, why);
  }
  return outcome;
}

std::string Processes::no_answer(const std::string& who) const {
  return "no answer within " + std::to_string(timeout_ms_ / 1000) + " s from " + who;
}

void Processes::watch() {
  const auto half = std::chrono::milliseconds(std::max<uint32_t>(timeout_ms_ / 2, 1));
  const auto due = [&](const Pending& p) { return p.was_told ? p.limit : p.limit - half; };
  std::unique_lock lock(mutex_);
  while (!closing_) {
    Pending* first = nullptr;
    for (Pending* p : pending_)
      if (!p->is_late && (!first || due(*p) < due(*first))) first = p;
    // Exchanges that begin meanwhile are due later than this.
    const auto until = first ? due(*first) : Clock::now() + half;
    if (!first || Clock::now() < until) {
      changed_.wait_until(lock, until);
      continue;
    }
    Pending& one = *first;
    const uint32_t next = one.next.load(std::memory_order_relaxed);
    uint32_t process = kNobody;
    if (next < one.receives.size())
      process = one.receives[next].process;
    else if (const uint32_t other = std::atomic_ref(one.process).load(std::memory_order_relaxed); other != rank_)
      process = other;  // what it sends is not taken
    if (process >= size()) process = kNobody;
    if (!one.was_told) {
      // Who has waited longer for this process is to hear that another one is the reason.
      one.was_told = true;
      if (process == kNobody || notices_ + 2 >= kMostNotices) continue;
      const uint32_t number = notices_++;
      lock.unlock();
      if (const Connection::Use use = connection_.use()) post_notice(use, number, process);
      lock.lock();
      continue;
    }
    one.is_late = true;
    if (process != kNobody) {
      const uint32_t number = notices_++;
      lock.unlock();
      const std::string why = no_answer(name(process));
      // The exchange, which waits for the answers, keeps the connections open.
      connection_.leave(Status(Code::DeadlineExceeded, *one.what + ": " + why), why);
      std::string who = ask_who_waits(*one.use, process, number);
      lock.lock();
      one.who = std::move(who);
    }
    one.was_asked = true;
    changed_.notify_all();
  }
}

uint64_t Processes::notice_tag(uint32_t sender, uint32_t number) {
  return collet_hash_number(collet_hash_number(0x6e6f74696365, sender), number);
}

std::string Processes::post_notice(const Connection::Use& use, uint32_t number, uint32_t process) {
  Notice own{1, process};
  std::string lost;
  for (uint32_t r = 0; r < size(); ++r) {
    if (r == rank_) continue;
    const collet_message message = {r, 0, notice_tag(rank_, number), &own, sizeof own};
    collet_error ignored{};
    if (use->post(use.transport(), &message, &ignored) != COLLET_OK) lost += "; " + name(r) + " is lost";
  }
  return lost;
}

std::string Processes::ask_who_waits(const Connection::Use& use, uint32_t process, uint32_t number) {
  const std::string lost = post_notice(use, number, process);
  std::vector<std::array<Notice, kMostNotices>> heard(size());
  std::vector<collet_message> receives;
  for (uint32_t k = 0; k < kMostNotices; ++k)
    for (uint32_t r = 0; r < size(); ++r)
      if (r != rank_) receives.push_back({r, 0, notice_tag(r, k), &heard[r][k], sizeof(Notice)});
  // Nobody sends so many, so this ends with DEADLINE_EXCEEDED; the notices that there are are in place then.
  uint32_t ignored_process = 0;
  collet_error ignored{};
  use->exchange(
      use.transport(), nullptr, 0, receives.data(), static_cast<uint32_t>(receives.size()), ask_ms(timeout_ms_),
      [](void*, uint32_t) -> int32_t { return 0; }, nullptr, &ignored_process, &ignored);
  // The last notice of a process counts.
  const auto waits_for = [&](uint32_t r) {
    uint32_t out = kNobody;
    for (const Notice& notice : heard[r])
      if (notice.is_there == 1) out = notice.process;
    return r == rank_ ? process : out;
  };
  std::string out = name(process);
  std::vector<bool> named(size());
  named[process] = true;
  for (uint32_t at = waits_for(process); at < size(); at = waits_for(at)) {
    out += ", which waits for " + name(at);
    if (named[at]) break;
    named[at] = true;
  }
  return out + lost;
}

std::vector<uint32_t> Processes::lost(const Connection::Use& use, std::span<const uint32_t> processes) const {
  std::vector<uint32_t> out;
  // A message that nobody receives: only whether there is a connection matters.
  char byte = 0;
  for (const uint32_t r : processes) {
    if (r == rank_) continue;
    collet_error ignored{};
    const collet_message probe = {r, 0, collet_hash_number(0x70726f6265, rank_), &byte, 1};
    if (use->post(use.transport(), &probe, &ignored) != COLLET_OK) out.push_back(r);
  }
  return out;
}

std::string Processes::lost_among(std::span<const uint32_t> processes) {
  const Connection::Use use = connection_.use();
  if (!use) return "; this process has left the group";
  std::string out;
  for (const uint32_t r : lost(use, processes)) out += "; " + name(r) + " is lost";
  return out;
}

bool Processes::all_have_exchange() const {
  return std::all_of(processes_.begin(), processes_.end(), [](const Process& p) { return p.has_exchange; });
}

Status Processes::give_up(const Status& failure, std::span<const uint32_t> processes, const std::string& what) {
  std::string why = failure.message();
  const Connection::Use use = connection_.use();
  if (use) {
    const std::string lost = lost_among(processes);
    why += lost;
    std::string others;
    for (const uint32_t r : processes)
      if (r != rank_) others += (others.empty() ? "" : ", ") + name(r);
    if (lost.empty() && failure.code() == Code::DeadlineExceeded) why += "; it waited for " + others;
  } else {
    why += "; " + connection_.lost().message();
  }
  const Status outcome(failure.code(), what + ": " + why);
  if (use) connection_.leave(outcome, why);
  return outcome;
}

void Processes::post(const collet_message& message) {
  const Connection::Use use = connection_.use();
  collet_error ignored{};
  if (use) use->post(use.transport(), &message, &ignored);
}

}  // namespace collet::runtime
