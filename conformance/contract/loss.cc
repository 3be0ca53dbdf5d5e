// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "conformance/contract/queues.h"

// Contract cases for a device that fails or is lost. They need an option of the backend that causes the failure.

namespace collet::conformance {
namespace {

constexpr uint64_t kBytes = 4096;
constexpr int kMostPieces = 300;
constexpr char kNothingFailed[] =
    "nothing failed; to see what becomes of it, give an option of the backend's that makes the device fail or loses "
    "it, "
    "and --filter 'contract/loss/*'";

struct Failure {
  collet_status status = COLLET_OK;
  std::string message;
  bool operator==(const Failure&) const = default;
};

Failure wait(const Setting& s, const Queue& queue, uint64_t value) {
  Failure out;
  out.status = s.wait(queue, value, kForever, &out.message);
  return out;
}

// Opens another instance after the first one is closed. This may fail, but then must give a message.
void open_again(Contract& c) {
  OpenOptions options(c.plugin());
  collet_backend_instance* instance = nullptr;
  collet_instance_info info{};
  info.struct_size = sizeof info;
  std::string message;
  const collet_status status = checked_call(
      c, "open", [&](collet_error* error) { return c.plugin().table().open(options.get(), &instance, &info, error); },
      &message);
  if (status == COLLET_OK && instance) c.plugin().table().close(instance);
  if (status != COLLET_OK)
    c.check(!message.empty(), Promise::ERRORS, "open after the device had failed gave status {} without a word",
            status);
}

void queues(Contract& c) {
  {
    c.begin_set_up();
    const Setting s = start_queues(c);
    if (!s) return;
    std::array<Queue, 3> all = {s.create(COLLET_QUEUE_COMPUTE), s.create(COLLET_QUEUE_UPLOAD),
                                s.create(COLLET_QUEUE_DOWNLOAD)};
    Buffer a, b;
    Bytes host = pattern(kBytes, 1);
    if (!all[0] || !all[1] || !all[2]) return;
    // The device may be lost at any call from here on.
    const uint32_t space = s.instance->device().default_space;
    const uint64_t alignment = s.instance->device().alignment();
    if (s.instance->try_alloc(0, space, kBytes, alignment, a) != COLLET_OK ||
        s.instance->try_alloc(0, space, kBytes, alignment, b) != COLLET_OK)
      return c.skip("the device fails before there is memory: let it fail later");
    c.end_set_up();
    const auto put = [&](size_t i) {
      const collet_copy_region one = i == 0   ? region(at(a), at(b), kBytes)
                                     : i == 1 ? region(at_host(host.data()), at(a), kBytes)
                                              : region(at(b), at_host(host.data()), kBytes);
      return s.copy(all[i], {one});
    };
    std::array<uint64_t, 3> reached{};
    size_t failed = 3;
    Failure failure;
    for (int piece = 0; piece < kMostPieces && failed == 3; ++piece) {
      const size_t i = static_cast<size_t>(piece) % 3;
      if (!put(i)) return c.skip("a call itself failed, and no queue");
      failure = wait(s, all[i], all[i].last());
      if (failure.status == COLLET_OK) {
        reached[i] = all[i].last();
      } else {
        failed = i;
      }
    }
    if (failed == 3) return c.skip(kNothingFailed);
    // The queue stays failed, with the same message; points that were reached stay reached.
    for (int again = 0; again < 3; ++again) {
      const Failure now = wait(s, all[failed], all[failed].last());
      if (!c.check(now == failure, Promise::QUEUE_WAIT_REACHED, "a failed queue said {} and '{}', and then {} and '{}'",
                   failure.status, failure.message, now.status, now.message))
        return;
    }
    c.check(!failure.message.empty(), Promise::ERRORS, "a queue failed with status {} without a word", failure.status);
    for (size_t i = 0; i < 3; ++i) {
      const Failure now = wait(s, all[i], reached[i]);
      c.check(now.status == COLLET_OK, Promise::QUEUE_WAIT_REACHED,
              "a point that was reached before the failure gave status {}", now.status);
    }
    if (put(failed)) {
      const Failure now = wait(s, all[failed], all[failed].last());
      c.check(now == failure, Promise::QUEUE_FAILED,
              "work that was put on a failed queue ended with status {} and '{}'", now.status, now.message);
    }
    // The other queues of a lost device fail, all with the same status; those of a device that is not lost continue.
    const bool lost = failure.status == COLLET_UNAVAILABLE;
    for (size_t i = 0; i < 3; ++i) {
      if (i == failed || !put(i)) continue;
      const Failure now = wait(s, all[i], all[i].last());
      c.check(now.status == (lost ? COLLET_UNAVAILABLE : COLLET_OK), Promise::DEVICE_LOST,
              "after a queue had failed with status {}, work on another one ended with status {}: {}", failure.status,
              now.status, now.message);
    }
    // Every other function returns, with an error or with success.
    Buffer more;
    (void)s.instance->try_alloc(0, space, kBytes, alignment, more);
    Bytes back(kBytes);
    const collet_copy_region down = region(at(a), at_host(back.data()), kBytes);
    (void)checked_call(c, "copy", [&](collet_error* error) {
      return s.instance->table().copy(s.instance->handle(), &down, 1, nullptr, error);
    });
    collet_device_info info{};
    info.struct_size = sizeof info;
    const collet_status described = checked_call(c, "device_info", [&](collet_error* error) {
      return s.instance->table().device_info(s.instance->handle(), 0, &info, error);
    });
    c.check(described == COLLET_OK, Promise::DEVICE_SAME, "device_info gave status {} once the device had failed",
            described);
  }
  // All queues, buffers and the instance are destroyed here.
  open_again(c);
}

// Makes blocking executions and copies until one fails.
void calls(Contract& c) {
  {
    if (!c.plugin().computes()) return c.skip("the backend runs no ops");
    c.begin_set_up();
    const auto instance = Instance::open(c);
    if (!instance) return;
    if (!instance->executes()) return c.skip("a device has COLLET_TRAIT_VIRTUAL");
    Buffer first;
    if (instance->try_alloc(0, instance->device().default_space, kBytes, instance->device().alignment(), first) !=
        COLLET_OK)
      return c.skip("the device is lost before anything ran");
    const std::string body = accepted_sum(*instance);
    if (body.empty()) return;
    const PreparedProgram ready = prepare(*instance, body);
    if (!ready) return;
    GuardedLaunch guarded(*instance, *ready.program, ready.executable, {.donate_all = true});
    const std::vector<hlo::Literal> inputs = ready.program->draw(1);
    if (!guarded.fill(inputs, 1)) return;
    c.end_set_up();
    Failure failure;
    for (int piece = 0; piece < kMostPieces && failure.status == COLLET_OK; ++piece)
      failure.status = guarded.execute(&failure.message);
    if (failure.status == COLLET_OK) return c.skip(kNothingFailed);
    c.check(!failure.message.empty(), Promise::ERRORS, "execute failed with status {} without a word", failure.status);
    // A lost device stays lost.
    for (int again = 0; again < 3; ++again) {
      std::string message;
      const collet_status now = guarded.execute(&message);
      if (failure.status == COLLET_UNAVAILABLE &&
          !c.check(now == COLLET_UNAVAILABLE, Promise::DEVICE_LOST,
                   "execute said that the device is lost, and then gave status {}", now))
        return;
    }
    Buffer more;
    (void)instance->try_alloc(0, instance->device().default_space, kBytes, instance->device().alignment(), more);
  }
  open_again(c);
}

// The calls that use the device. They are told apart because each may be the first to notice that it is lost.
enum class Use { Upload, Download, Copy, Execute };
constexpr std::array<std::pair<Use, const char*>, 4> kUses = {
    {{Use::Upload, "upload"}, {Use::Download, "download"}, {Use::Copy, "copy"}, {Use::Execute, "execute"}}};

// A device in use: two buffers, and, if the backend computes, an executable that has run.
class InUse {
 public:
  // Returns null, and skips the case, if the device is lost too early.
  static std::unique_ptr<InUse> start(Contract& c, Instance& instance, uint32_t device, bool computes) {
    auto made = std::unique_ptr<InUse>(new InUse(c, instance, device));
    const uint32_t space = instance.device(device).default_space;
    const uint64_t alignment = instance.device(device).alignment();
    if (instance.try_alloc(device, space, kBytes, alignment, made->a_) != COLLET_OK ||
        instance.try_alloc(device, space, kBytes, alignment, made->b_) != COLLET_OK) {
      c.skip("the device is lost before there is memory: let it fail later");
      return nullptr;
    }
    if (!computes) return made;
    const std::string body = accepted_sum(instance);
    if (body.empty()) return nullptr;
    made->ready_ = prepare(instance, body, {}, {.device = device});
    if (!made->ready_) return nullptr;
    made->launch_ = std::make_unique<GuardedLaunch>(instance, *made->ready_.program, made->ready_.executable,
                                                    Placement{.device = device});
    if (!made->launch_->fill(made->ready_.program->draw(1), 1)) return nullptr;
    return made;
  }

  bool can(Use use) const { return use != Use::Execute || launch_; }

  collet_status call(Use use, std::string* message = nullptr) {
    if (use == Use::Execute) return launch_->execute(message);
    const collet_copy_region one = use == Use::Upload     ? region(at_host(host_.data()), at(a_), kBytes)
                                   : use == Use::Download ? region(at(a_), at_host(back_.data()), kBytes)
                                                          : region(at(a_), at(b_), kBytes);
    return checked_call(
        c_, "copy",
        [&](collet_error* error) { return instance_.table().copy(instance_.handle(), &one, 1, nullptr, error); },
        message);
  }

  // Makes the calls that need not use the device. Each may succeed, or say that the device is lost.
  void make_other_calls() {
    Buffer more;
    const uint32_t space = instance_.device(device_).default_space;
    expect(instance_.try_alloc(device_, space, kBytes, instance_.device(device_).alignment(), more), "alloc");
    collet_device_info info{};
    info.struct_size = sizeof info;
    const collet_status described = checked_call(c_, "device_info", [&](collet_error* error) {
      return instance_.table().device_info(instance_.handle(), device_, &info, error);
    });
    c_.check(described == COLLET_OK, Promise::DEVICE_SAME, "device_info gave status {} once the device was lost",
             described);
    if (!ready_) return;
    const collet_program* program = ready_.program->get();
    const std::vector<uint32_t> ops = entry_ops(program);
    std::vector<collet_verdict> verdicts(ops.size());
    expect(checked_call(c_, "supports",
                        [&](collet_error* error) {
                          return instance_.table().supports(instance_.handle(), device_, program, ops.data(),
                                                            static_cast<uint32_t>(ops.size()), verdicts.data(), error);
                        }),
           "supports");
    const CompileResult made = compile(instance_, program, {.device = device_});
    expect(made.status, "compile");
    if (made.status != COLLET_OK) return;
    constexpr uint64_t kRun = 1;
    const collet_status ran = checked_call(c_, "execute", [&](collet_error* error) {
      return instance_.table().execute(made.executable.handle(), &launch_->launch(), 1, kRun, error);
    });
    c_.check(ran == COLLET_UNAVAILABLE, Promise::LOSS_STAYS,
             "an executable that was compiled once the device was lost gave status {} from execute", ran);
  }

  const Bytes& sent() const { return host_; }
  const Bytes& received() const { return back_; }

 private:
  InUse(Contract& c, Instance& instance, uint32_t device) : c_(c), instance_(instance), device_(device) {}
  void expect(collet_status status, const char* what) {
    c_.check(status == COLLET_OK || status == COLLET_UNAVAILABLE, Promise::LOSS_STAYS,
             "{} gave status {} once the device was lost", what, status);
  }

  Contract& c_;
  Instance& instance_;
  uint32_t device_;
  Buffer a_, b_;
  Bytes host_ = pattern(kBytes, 3), back_ = Bytes(kBytes);
  PreparedProgram ready_;
  std::unique_ptr<GuardedLaunch> launch_;
};

// Makes calls of one kind until one fails. Returns false, and skips the case, if none says that the device is lost.
bool lose(Contract& c, InUse& device, Use use) {
  Failure failure;
  for (int piece = 0; piece < kMostPieces && failure.status == COLLET_OK; ++piece)
    failure.status = device.call(use, &failure.message);
  if (failure.status == COLLET_UNAVAILABLE) return true;
  c.skip(failure.status == COLLET_OK ? kNothingFailed : "a call failed, and did not say that the device is lost");
  return false;
}

// Checks that each call that uses a lost device says so.
bool stays_lost(Contract& c, InUse& device, const char* when) {
  for (const auto& [use, name] : kUses) {
    if (!device.can(use)) continue;
    const collet_status now = device.call(use);
    // What stood in the memory of the device may be said to be gone.
    const bool is_read = use == Use::Download || use == Use::Copy;
    const bool is_told = now == COLLET_UNAVAILABLE || (now == COLLET_DATA_LOSS && is_read);
    if (!c.check(is_told, Promise::LOSS_STAYS, "the device was lost, and then {} gave status {}, {}", name, now, when))
      return false;
  }
  return true;
}

void lost_at(Contract& c, Use use) {
  {
    c.begin_set_up();
    const auto instance = Instance::open(c);
    if (!instance) return;
    const bool computes = c.plugin().computes() && instance->executes();
    if (use == Use::Execute && !computes) return c.skip("the backend runs no ops");
    const auto device = InUse::start(c, *instance, 0, computes);
    if (!device) return;
    c.end_set_up();
    if (!lose(c, *device, use) || !stays_lost(c, *device, "at once")) return;
    device->make_other_calls();
    if (!stays_lost(c, *device, "after other calls")) return;
    // Everything is freed and released here, and closed.
  }
  open_again(c);
}

void other_device(Contract& c) {
  {
    c.begin_set_up();
    const auto instance = Instance::open(c, 2);
    if (!instance) return;
    if (instance->devices().size() < 2) return c.skip("there is one device");
    const auto lost = InUse::start(c, *instance, 0, false), other = InUse::start(c, *instance, 1, false);
    if (!lost || !other) return;
    c.end_set_up();
    if (!lose(c, *lost, Use::Upload)) return;
    bool is_lost = false;  // the other device, too
    for (int again = 0; again < 3; ++again) {
      for (const Use use : {Use::Upload, Use::Download}) {
        const collet_status now = other->call(use);
        c.check(now == COLLET_UNAVAILABLE || (now == COLLET_OK && !is_lost), Promise::LOSS_STAYS,
                "device 0 was lost, and then {} of device 1 gave status {}{}",
                use == Use::Upload ? "an upload" : "a download", now, is_lost ? ", when that was lost as well" : "");
        is_lost |= now == COLLET_UNAVAILABLE;
      }
      c.check(is_lost || other->received() == other->sent(), Promise::COPY,
              "device 0 was lost, and device 1 gave other data than it got, without an error");
    }
    stays_lost(c, *lost, "after calls on another device");
  }
  open_again(c);
}

}  // namespace

void add_loss_contracts(std::vector<ContractCase>& list) {
  list.push_back({"loss/queues", queues});
  list.push_back({"loss/calls", calls});
  for (const auto& [use, name] : kUses)
    list.push_back({fmt::format("loss/at_{}", name), [use](Contract& c) { lost_at(c, use); }});
  list.push_back({"loss/other_device", other_device});
}

}  // namespace collet::conformance
