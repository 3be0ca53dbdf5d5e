// SPDX-License-Identifier: Apache-2.0
#include "conformance/bench/collectives.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <optional>

#include "conformance/bench/loopback.h"
#include "hlo/base/json.h"

namespace collet::bench {
namespace {

using conformance::BufferHandle;
using conformance::Program;
using conformance::Session;
using hlo::Literal;
using hlo::Shape;
using Clock = std::chrono::steady_clock;

constexpr uint64_t kElement = sizeof(float);
constexpr uint64_t kGrowth = 4;  // from one row to the next
constexpr uint64_t kStream = uint64_t{32} << 20;
constexpr unsigned kPings = 100;
constexpr uint64_t kBarrierTag = uint64_t{0x7f} << 56;  // none that a transport's own collectives use
constexpr char kPrefix[] = "collet-bench/";

double ns_since(Clock::time_point start) {
  return std::chrono::duration<double, std::nano>(Clock::now() - start).count();
}

// Returns how many calls follow each other in a sample: a short one is measured with its neighbours.
unsigned calls_of(uint64_t bytes) {
  constexpr uint64_t kShort = uint64_t{64} << 10, kMiddle = uint64_t{1} << 20;
  return bytes <= kShort ? 20 : bytes <= kMiddle ? 5 : 1;
}

uint32_t kind_of(Collective what) {
  return static_cast<uint32_t>(what);
}
static_assert(static_cast<int>(Collective::Broadcast) == COLLET_OWN_BROADCAST);

bool divides_argument(Collective what) {
  return what == Collective::AllGather;
}

std::string list_of(uint32_t participants) {
  std::string out;
  for (uint32_t p = 0; p < participants; ++p) out += fmt::format("{}{}", p ? "," : "", p);
  return out;
}

// Returns a program of the collective alone. `elements` is that of the larger array.
std::string program_of(Collective what, uint64_t elements, uint32_t participants) {
  const uint64_t part = elements / participants;
  const std::string all = list_of(participants);
  std::string attributes;
  uint64_t in = elements, out = elements;
  switch (what) {
    case Collective::AllReduce:
      attributes = "replica_groups={}, to_apply=sum";
      break;
    case Collective::AllGather:
      attributes = "replica_groups={}, dimensions={0}";
      in = part;
      break;
    case Collective::ReduceScatter:
      attributes = "replica_groups={}, dimensions={0}, to_apply=sum";
      out = part;
      break;
    case Collective::AllToAll:
      attributes = fmt::format("replica_groups={{{{{}}}}}, dimensions={{0}}", all);
      break;
    case Collective::Permute:
      attributes = "source_target_pairs={";
      for (uint32_t p = 0; p < participants; ++p)
        attributes += fmt::format("{}{{{},{}}}", p ? "," : "", p, (p + 1) % participants);
      attributes += "}";
      break;
    case Collective::Broadcast:
      attributes = fmt::format("replica_groups={{{{{}}}}}", all);
      break;
  }
  return fmt::format(
      "HloModule bench, replica_count={}\n\nsum {{\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT r = "
      "f32[] "
      "add(a, b)\n}}\n\nENTRY main {{\n  x = f32[{}] parameter(0)\n  ROOT y = f32[{}] {}(x), {}\n}}\n",
      participants, in, out, name_of(what), attributes);
}

// The value of every element of the argument of a participant: that of its process.
float value_of(uint32_t participant, uint32_t devices) {
  return static_cast<float>(participant / devices + 1);
}

// Returns element i of the result of a participant.
float expected_at(Collective what, uint64_t i, uint64_t elements, uint32_t participant, uint32_t participants,
                  uint32_t devices) {
  switch (what) {
    case Collective::AllReduce:
    case Collective::ReduceScatter: {
      float sum = 0;
      for (uint32_t p = 0; p < participants; ++p) sum += value_of(p, devices);
      return sum;
    }
    case Collective::AllGather:
    case Collective::AllToAll:
      return value_of(static_cast<uint32_t>(i / (elements / participants)), devices);
    case Collective::Permute:
      return value_of((participant + participants - 1) % participants, devices);
    case Collective::Broadcast:
      return value_of(0, devices);
  }
  return 0;
}

// Returns what is wrong with a result; empty if it is right.
std::string check(Collective what, const float* data, uint64_t count, uint64_t elements, uint32_t participant,
                  uint32_t participants, uint32_t devices) {
  const uint64_t part = elements / participants;
  for (uint64_t from = 0; from < count; from += part) {
    const float value = expected_at(what, from, elements, participant, participants, devices);
    for (uint64_t i = from; i < std::min(from + part, count); ++i)
      if (data[i] != value)
        return fmt::format("element {} of participant {} is {} and should be {}", i, participant, data[i], value);
  }
  return {};
}

struct Closer {
  const collet_transport* table = nullptr;
  void operator()(void* handle) const { table->close(handle); }
};

// The group's own connections: for barriers, and for the transport's own collectives.
class Group {
 public:
  static Expected<Group> open(const collet_processes& processes, const MeasuredTransport& transport) {
    Group out;
    out.processes_ = &processes;
    out.transport_ = &transport;
    const std::string prefix = std::string(kPrefix) + "transport/";
    const collet_transport_options options = {sizeof(collet_transport_options),
                                              processes.rank,
                                              processes.size,
                                              transport.timeout_ms,
                                              processes.store,
                                              prefix.c_str(),
                                              transport.address.c_str()};
    collet_error error{};
    void* handle = nullptr;
    const collet_status status = transport.table->open(&options, &handle, &error);
    if (status != COLLET_OK) return from_c(status, error, "transport '" + transport.name + "', open");
    out.handle_ = std::unique_ptr<void, Closer>(handle, Closer{transport.table});
    if (processes.rank < 2) {
      COLLET_ASSIGN(out.loopback_, Loopback::connect(processes.rank, *processes.store,
                                                     std::string(kPrefix) + "loopback", transport.timeout_ms));
    }
    return out;
  }

  bool has_collectives() const { return transport_->collective != nullptr; }
  std::optional<Loopback>& loopback() { return loopback_; }

  // Waits for all processes.
  Status barrier() {
    const uint32_t size = processes_->size;
    std::vector<char> out(size), in(size);
    std::vector<collet_message> sends, receives;
    for (uint32_t p = 0; p < size; ++p) {
      if (p == processes_->rank) continue;
      sends.push_back({p, 0, kBarrierTag, &out[p], 1});
      receives.push_back({p, 0, kBarrierTag, &in[p], 1});
    }
    uint32_t process = 0;
    collet_error error{};
    const collet_status status = transport_->table->exchange(
        handle_.get(), sends.data(), size - 1, receives.data(), size - 1, transport_->timeout_ms,
        [](void*, uint32_t) -> int32_t { return 0; }, nullptr, &process, &error);
    return status == COLLET_OK ? ok_status()
                               : from_c(status, error, fmt::format("waiting for process {} between samples", process));
  }

  // Runs the transport's own collective; UNIMPLEMENTED if there is none.
  Status collective(Collective what, const std::vector<float>& in, std::vector<float>& out, uint64_t elements) {
    const collet_own_collective call = {sizeof call, kind_of(what),          in.data(), out.data(),
                                        elements,    transport_->timeout_ms, 0};
    collet_error error{};
    const collet_status status = transport_->collective(handle_.get(), &call, &error);
    return status == COLLET_OK ? ok_status() : from_c(status, error, "the transport's own collective");
  }

  Status put(const std::string& key, const std::string& value) {
    collet_error error{};
    const collet_store& store = *processes_->store;
    const collet_status status = store.put(store.user, (kPrefix + key).c_str(), value.data(), value.size(), &error);
    return status == COLLET_OK ? ok_status() : from_c(status, error, "the store, put");
  }
  Expected<std::string> get(const std::string& key) {
    collet_error error{};
    const collet_store& store = *processes_->store;
    std::string value;
    const auto take = [](void* out, const void* data, uint64_t bytes) {
      static_cast<std::string*>(out)->assign(static_cast<const char*>(data), bytes);
    };
    const collet_status status =
        store.get(store.user, (kPrefix + key).c_str(), transport_->timeout_ms, take, &value, &error);
    return status == COLLET_OK ? Expected<std::string>(std::move(value)) : from_c(status, error, "the store, get");
  }

 private:
  const collet_processes* processes_ = nullptr;
  const MeasuredTransport* transport_ = nullptr;
  std::unique_ptr<void, Closer> handle_;
  std::optional<Loopback> loopback_;
};

// The samples of one thing that is measured, in nanoseconds: of this process, and where all are known the longest of all.
using Samples = std::vector<double>;

CollectiveTime time_of(Samples samples) {
  if (samples.empty()) return {};
  std::sort(samples.begin(), samples.end());
  const auto at = [&](size_t numerator) { return samples[(samples.size() - 1) * numerator / 4]; };
  return {(samples[(samples.size() - 1) / 2] + samples[samples.size() / 2]) / 2, at(1), at(3)};
}

class Measurement {
 public:
  explicit Measurement(const CollectiveRequest& request) : request_(request) {}

  Expected<CollectiveReport> run() {
    conformance::BackendChoice backend = request_.backend;
    backend.processes = request_.group;
    COLLET_ASSIGN(session_, Session::open(backend));
    COLLET_ASSIGN(const collet_client_info info, session_->info());
    report_.backend = info.backend;
    report_.devices = info.device_count;
    report_.repeat = request_.repeat;
    if (request_.group) {
      report_.processes = request_.group->size;
      rank_ = request_.group->rank;
      COLLET_ASSIGN(group_, Group::open(*request_.group, request_.transport));
      report_.transport = request_.transport.name;
    }
    std::vector<Collective> chosen;
    for (const Collective what : kCollectives)
      if (name_of(what).find(request_.filter) != std::string_view::npos) chosen.push_back(what);
    if (chosen.empty()) return invalid_argument("no collective has '" + request_.filter + "' in its name");
    std::vector<uint64_t> sizes;
    for (uint64_t bytes = request_.least_bytes; bytes <= request_.most_bytes; bytes *= kGrowth) {
      // Arrays have at least an element for each participant, and as many for all.
      const uint64_t unit = kElement * report_.participants();
      const uint64_t rounded = std::max(bytes / unit * unit, unit);
      if (sizes.empty() || rounded > sizes.back()) sizes.push_back(rounded);
    }
    size_t done = 0;
    for (const uint64_t bytes : sizes) {
      COLLET_TRY(measure_size(chosen, bytes, [&](Collective what) {
        if (request_.progress)
          request_.progress(++done, sizes.size() * chosen.size() * request_.repeat,
                            fmt::format("{} of {} B", name_of(what), bytes));
      }));
    }
    COLLET_TRY(conclude());
    return rank_ == 0 ? std::move(report_) : CollectiveReport();
  }

 private:
  // What is measured of one collective and size in this process.
  struct One {
    Program program;
    std::vector<BufferHandle> arguments;
    std::vector<float> own_in, own_out;
    bool has_own = false;
    Samples ours, own;
    std::string differs;
  };

  Status barrier() { return group_ ? group_->barrier() : ok_status(); }

  Status prepare(Collective what, uint64_t elements, One& one) {
    const uint32_t participants = report_.participants();
    COLLET_ASSIGN(one.program, session_->compile(program_of(what, elements, participants), {.file = "bench"}));
    const uint64_t count = divides_argument(what) ? elements / participants : elements;
    Literal input = Literal::uninitialized(Shape::array(hlo::Type::F32, {static_cast<int64_t>(count)}));
    std::fill_n(input.mutable_data<float>(), count, value_of(rank_ * report_.devices, report_.devices));
    COLLET_ASSIGN(one.arguments, one.program.upload({&input, 1}));
    COLLET_TRY(barrier());
    COLLET_ASSIGN(const std::vector<BufferHandle> results, one.program.execute(one.arguments));
    for (size_t k = 0; k < results.size() && one.differs.empty(); ++k) {
      COLLET_ASSIGN(const Literal result, conformance::fetch(results[k].get()));
      one.differs = check(what, result.data<float>(), static_cast<uint64_t>(result.element_count()), elements,
                          rank_ * report_.devices + static_cast<uint32_t>(k), participants, report_.devices);
    }
    one.has_own = group_ && group_->has_collectives();
    if (!one.has_own) return ok_status();
    // The transport's own collective has one array a process. It divides arrays by the number of processes, which divides that of
    // the participants.
    const uint32_t processes = report_.processes;
    one.own_in.assign(elements, value_of(rank_, 1));
    one.own_out.assign(elements, 0);
    COLLET_TRY(barrier());
    const Status ran = group_->collective(what, one.own_in, one.own_out, elements);
    if (ran.code() == Code::Unimplemented) {
      one.has_own = false;
      return ok_status();
    }
    COLLET_TRY(ran);
    const std::string wrong =
        check(what, one.own_out.data(), what == Collective::ReduceScatter ? elements / processes : elements, elements,
              rank_, processes, 1);
    if (!wrong.empty() && one.differs.empty()) one.differs = "the transport's own: " + wrong;
    return ok_status();
  }

  Status measure_size(const std::vector<Collective>& chosen, uint64_t bytes,
                      const std::function<void(Collective)>& progress) {
    const uint64_t elements = bytes / kElement;
    const unsigned calls = calls_of(bytes);
    std::vector<One> all(chosen.size());
    for (size_t c = 0; c < chosen.size(); ++c) {
      if (const Status status = prepare(chosen[c], elements, all[c]); !status.ok())
        return status.with_prefix(fmt::format("{} of {} bytes: ", name_of(chosen[c]), bytes));
    }
    for (unsigned sample = 0; sample < request_.repeat; ++sample) {
      COLLET_TRY(measure_limit());
      for (size_t c = 0; c < chosen.size(); ++c) {
        if (const Status status = measure_once(chosen[c], elements, calls, all[c]); !status.ok())
          return status.with_prefix(fmt::format("{} of {} bytes: ", name_of(chosen[c]), bytes));
        progress(chosen[c]);
      }
    }
    for (size_t c = 0; c < chosen.size(); ++c) {
      report_.results.push_back({.what = chosen[c], .bytes = bytes, .differs = std::move(all[c].differs)});
      samples_.push_back(std::move(all[c].ours));
      samples_.push_back(std::move(all[c].own));
    }
    return ok_status();
  }

  // Calls follow each other without a wait between them, as in nccl-tests.
  Status measure_once(Collective what, uint64_t elements, unsigned calls, One& one) {
    COLLET_TRY(barrier());
    auto start = Clock::now();
    for (unsigned i = 0; i < calls; ++i) COLLET_TRY(one.program.execute(one.arguments).status());
    one.ours.push_back(ns_since(start) / calls);
    if (!one.has_own) return ok_status();
    COLLET_TRY(barrier());
    start = Clock::now();
    for (unsigned i = 0; i < calls; ++i) COLLET_TRY(group_->collective(what, one.own_in, one.own_out, elements));
    one.own.push_back(ns_since(start) / calls);
    return ok_status();
  }

  Status measure_limit() {
    COLLET_TRY(barrier());
    if (group_) {
      if (!group_->loopback()) return ok_status();
      COLLET_ASSIGN(const double ping, group_->loopback()->ping(kPings));
      COLLET_ASSIGN(const double stream, group_->loopback()->stream(kStream));
      pings_.push_back(ping);
      streams_.push_back(stream);
      return ok_status();
    }
    if (copied_.empty()) copied_.assign(2 * kStream, 1);
    const auto start = Clock::now();
    std::memcpy(copied_.data(), copied_.data() + kStream, kStream);
    streams_.push_back(ns_since(start));
    return ok_status();
  }

  // Brings the samples of all processes together in process 0, and makes the report of them.
  Status conclude() {
    if (group_ && rank_ > 0) {
      std::string text;
      for (const Samples& samples : samples_)
        text.append(reinterpret_cast<const char*>(samples.data()), samples.size() * sizeof(double));
      std::string differs;
      for (const CollectiveResult& one : report_.results) differs += one.differs + '\n';
      COLLET_TRY(group_->put(fmt::format("samples/{}", rank_), text));
      COLLET_TRY(group_->put(fmt::format("differs/{}", rank_), differs));
      return barrier();
    }
    for (uint32_t p = 1; p < report_.processes; ++p) {
      COLLET_ASSIGN(const std::string text, group_->get(fmt::format("samples/{}", p)));
      COLLET_ASSIGN(const std::string differs, group_->get(fmt::format("differs/{}", p)));
      size_t at = 0;
      for (Samples& samples : samples_)
        for (double& sample : samples) {
          double other = 0;
          if (at + sizeof other > text.size()) return internal_error("a process has measured something else");
          std::memcpy(&other, text.data() + at, sizeof other);
          at += sizeof other;
          sample = std::max(sample, other);
        }
      size_t line = 0;
      for (CollectiveResult& one : report_.results) {
        const size_t end = std::min(differs.find('\n', line), differs.size());
        if (one.differs.empty() && end > line)
          one.differs = fmt::format("process {}: {}", p, differs.substr(line, end - line));
        line = std::min(end + 1, differs.size());
      }
    }
    report_.limit_latency_ns = time_of(pings_).median_ns;
    report_.limit_bytes_per_ns = static_cast<double>(kStream) / std::max(time_of(streams_).median_ns, 1.0);
    for (size_t i = 0; i < report_.results.size(); ++i) {
      CollectiveResult& one = report_.results[i];
      one.ours = time_of(samples_[2 * i]);
      one.own = time_of(samples_[2 * i + 1]);
      const double sent = static_cast<double>(one.bytes) * bus_factor(one.what, report_.participants());
      one.limit_ns = report_.limit_latency_ns + sent / report_.limit_bytes_per_ns;
    }
    return barrier();
  }

  const CollectiveRequest& request_;
  CollectiveReport report_;
  uint32_t rank_ = 0;
  std::unique_ptr<Session> session_;
  std::optional<Group> group_;
  std::vector<Samples> samples_;  // of the results: ours, then the transport's own
  Samples pings_, streams_;
  std::vector<char> copied_;
};

void write_time(JsonWriter& out, const char* name, const CollectiveResult& result, const CollectiveTime& time,
                double factor) {
  out.key(name).begin_object();
  out.field("median_ns", time.median_ns).field("low_ns", time.low_ns).field("high_ns", time.high_ns);
  out.field("algorithm_gbytes", result.bytes_per_ns(time)).field("bus_gbytes", factor * result.bytes_per_ns(time));
  out.end_object();
}

}  // namespace

std::string_view name_of(Collective what) {
  constexpr std::array kNames{"all-reduce", "all-gather",         "reduce-scatter",
                              "all-to-all", "collective-permute", "collective-broadcast"};
  return kNames[static_cast<size_t>(what)];
}

double bus_factor(Collective what, uint32_t participants) {
  const double others = (participants - 1.0) / participants;
  switch (what) {
    case Collective::AllReduce:
      return 2 * others;
    case Collective::AllGather:
    case Collective::ReduceScatter:
    case Collective::AllToAll:
      return others;
    case Collective::Permute:
    case Collective::Broadcast:
      return 1;
  }
  return 1;
}

double CollectiveResult::bytes_per_ns(const CollectiveTime& time) const {
  return time.ran() ? static_cast<double>(bytes) / time.median_ns : 0;
}

Expected<CollectiveReport> measure_collectives(const CollectiveRequest& request) {
  return Measurement(request).run();
}

std::string to_json(const CollectiveReport& report) {
  std::string text;
  JsonWriter out(text);
  out.begin_object().field("backend", report.backend).field("transport", report.transport);
  out.field("processes", report.processes).field("devices", report.devices).field("repeat", report.repeat);
  out.key("limit").begin_object().field("kind", report.processes > 1 ? "loopback" : "memory");
  out.field("latency_ns", report.limit_latency_ns).field("gbytes", report.limit_bytes_per_ns).end_object();
  out.key("collectives").begin_array();
  for (const CollectiveResult& one : report.results) {
    const double factor = bus_factor(one.what, report.participants());
    out.begin_object().field("name", name_of(one.what)).field("bytes", one.bytes).field("bus_factor", factor);
    write_time(out, "collet", one, one.ours, factor);
    if (one.own.ran()) {
      write_time(out, "transport", one, one.own, bus_factor(one.what, report.processes));
      out.field("of_transport", one.own.median_ns / one.ours.median_ns);
    }
    out.field("limit_ns", one.limit_ns).field("of_limit", one.limit_ns / one.ours.median_ns);
    out.field("right", one.differs.empty());
    if (!one.differs.empty()) out.field("differs", one.differs);
    out.end_object();
  }
  out.end_array().end_object();
  return text + "\n";
}

}  // namespace collet::bench
