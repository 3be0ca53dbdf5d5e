// SPDX-License-Identifier: Apache-2.0
#include "sdk/runtime/processes/transfers.h"

#include <collet/error.h>
#include <collet/hash.h>

#include <array>
#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include "sdk/runtime/backend/caught.h"

namespace collet::runtime {
namespace {

/// What goes before the data of an array, and what its receiver answers. Collet's version is equal in all processes, so the layout
/// is, too.
struct Note {
  int32_t code;      ///< of the failure for which no data come; 0: none
  uint32_t element;  ///< of the array, and
  uint64_t bytes;    ///< of all its elements
  char text[304];    ///< the type of the array, or the message of the failure
};

Note note_of(const ArrayType& type) {
  Note out{};
  out.element = type.element;
  out.bytes = type.bytes;
  collet_copy_text(out.text, sizeof out.text, type.to_string().c_str());
  return out;
}
Note note_of(const Status& failure) {
  Note out{};
  out.code = static_cast<int32_t>(failure.code());
  collet_copy_text(out.text, sizeof out.text, failure.message().c_str());
  return out;
}
std::string text_of(const Note& note) {
  return {note.text, strnlen(note.text, sizeof note.text)};
}

/// The messages of one transfer.
class Route {
 public:
  Route(Processes& processes, const collet_transfer& transfer)
      : processes_(processes),
        other_(processes.devices()[transfer.from].process == processes.rank()
                   ? processes.devices()[transfer.to].process
                   : processes.devices()[transfer.from].process),
        what_("transfer " + std::to_string(transfer.key) + " from device " + std::to_string(transfer.from) +
              " to device " + std::to_string(transfer.to)) {
    constexpr uint64_t kTransfers = 0x7472616e73666572;  // apart from the tags of collectives
    tag_ = kTransfers;
    for (const uint64_t number : {transfer.key, uint64_t{transfer.from}, uint64_t{transfer.to}})
      tag_ = collet_hash_number(tag_, number);
  }

  // Sends the array, or why there is none, and returns the receiver's answer.
  Status send(const ArrayType& type, const Expected<const void*>& data) {
    Note note = data.ok() ? note_of(type) : note_of(data.status());
    Note answer{};
    std::array<collet_message, 2> sends{message(kHead, &note, sizeof note)};
    if (data.ok() && type.bytes)
      sends[1] = message(data_part(note), const_cast<void*>(*data), type.bytes);  // only read
    const collet_message receive = message(kAnswer, &answer, sizeof answer);
    COLLET_TRY(processes_.exchange(
        {sends.data(), sends[1].bytes ? 2u : 1u}, {&receive, 1}, [&](uint32_t) { return answer_of(answer, ": "); },
        what_));
    return data.ok() ? ok_status() : data.status();
  }

  // Receives the array, which has its place in `to`. An error in place of it: the sender is told that there is none.
  Status receive(const ArrayType& type, const Expected<void*>& to) {
    Note note{};
    const Note own = note_of(type);
    std::array<collet_message, 2> receives{message(kHead, &note, sizeof note)};
    if (to.ok() && type.bytes) receives[1] = message(data_part(own), *to, type.bytes);
    Status refused, failed;
    const auto check = [&](uint32_t i) {
      if (i > 0) return ok_status();
      failed = answer_of(note, " failed in it: ");
      if (failed.ok() && !to.ok())
        refused = to.status().with_prefix(what_ + ": ");
      else if (failed.ok() && (note.element != own.element || note.bytes != own.bytes || text_of(note) != text_of(own)))
        refused = failed_precondition(what_ + ": " + processes_.name(other_) + " sends " + text_of(note) + ", " +
                                      processes_.name(processes_.rank()) + " receives " + text_of(own));
      return failed.ok() ? refused : failed;
    };
    const Status outcome = processes_.exchange({}, {receives.data(), receives[1].bytes ? 2u : 1u}, check, what_);
    if (!outcome.ok() && failed.ok() && refused.ok()) return outcome;  // the other process is not there
    Note answer = refused.ok() ? Note{} : note_of(refused);
    const collet_message send = message(kAnswer, &answer, sizeof answer);
    const Status answered = processes_.exchange({&send, 1}, {}, [](uint32_t) { return ok_status(); }, what_);
    return outcome.ok() ? answered : outcome;
  }

 private:
  enum : uint64_t { kHead = 1, kAnswer = 2, kData = 3 };

  // Data of another type are another message: those that come while their receive is given up would block a connection of Gloo's.
  static uint64_t data_part(const Note& note) {
    const std::string type = text_of(note);
    return collet_hash_number(collet_hash_bytes(kData, type.data(), type.size()), note.bytes);
  }
  collet_message message(uint64_t part, void* data, uint64_t bytes) const {
    return {other_, 0, collet_hash_number(tag_, part), data, bytes};
  }
  Status answer_of(const Note& note, const char* verb) const {
    if (note.code == 0) return ok_status();
    return Status(static_cast<Code>(note.code), what_ + ": " + processes_.name(other_) + verb + text_of(note));
  }

  Processes& processes_;
  uint32_t other_;
  std::string what_;
  uint64_t tag_ = 0;
};

Status check(Client& client, const collet_transfer& transfer, bool sends) {
  const Processes* const processes = client.processes();
  if (!processes) return failed_precondition("arrays are copied between processes, but the client has joined none");
  const auto devices = processes->devices();
  for (const uint32_t device : {transfer.from, transfer.to})
    if (device >= devices.size())
      return invalid_argument("device " + std::to_string(device) + " of a transfer; the processes have " +
                              std::to_string(devices.size()) + " devices");
  const uint32_t here = sends ? transfer.from : transfer.to, there = sends ? transfer.to : transfer.from;
  if (devices[here].process != processes->rank() || devices[there].process == processes->rank())
    return invalid_argument("a transfer from device " + std::to_string(transfer.from) + " to device " +
                            std::to_string(transfer.to) + " cannot be " + (sends ? "sent" : "received") +
                            " by process " + std::to_string(processes->rank()));
  return ok_status();
}

// Runs `work` on a thread of its own; the client lives until it ends. An error if there is no thread.
template <typename Work>
Status start(Client& client, Work work) {
  client.retain_for_work();
  const Status outcome = caught([&] {
    std::unique_ptr<Worker> worker = client.transfers().take();
    Worker* const thread = worker.get();
    thread->add([&client, thread, work = std::optional<Work>(std::move(work))]() mutable {
      (*work)();
      work.reset();  // it holds memory
      client.transfers().give_back(std::unique_ptr<Worker>(thread));
      client.release_after_work();
    });
    (void)worker.release();  // the task gives it back
    return ok_status();
  });
  if (!outcome.ok()) client.release_after_work();
  return outcome;
}

struct Sending {
  Sending(Buffer* sent, const collet_transfer& to) : buffer(sent), transfer(to) {}

  Buffer* buffer;  ///< a reference
  collet_transfer transfer;
  Buffer::Use use;
  Status failure;  ///< of the buffer, which has no data then
  Event* done = nullptr;

  void end(Status outcome) {
    if (use.ready) use.ready->release();
    use = {};
    done->set(std::move(outcome));
    done->release();
    buffer->release_after_work();
  }
};

struct Receiving {
  Buffer* buffer = nullptr;  ///< a reference
  collet_transfer transfer{};

  void end(Status outcome) const {
    if (!outcome.ok()) (void)buffer->fail(std::move(outcome));
    buffer->release_after_work();
  }
};

// The receiver also hears of a failure to get at the data.
Status send(Processes& processes, Sending& one) {
  std::unique_ptr<char[]> copy;
  const void* data = nullptr;
  if (one.failure.ok())
    one.failure = caught([&] {
      COLLET_ASSIGN(data, one.buffer->host_data(one.use, copy));
      return ok_status();
    });
  return Route(processes, one.transfer)
      .send(one.buffer->type(), one.failure.ok() ? Expected<const void*>(data) : one.failure);
}

Status receive(Processes& processes, const Receiving& one) {
  const ArrayType& type = one.buffer->type();
  Route route(processes, one.transfer);
  if (void* const place = one.buffer->promised_place()) {
    COLLET_TRY(route.receive(type, place));
  } else {
    const std::unique_ptr<char[]> data(new (std::nothrow) char[type.bytes]);
    if (!data)
      return route.receive(type, resource_exhausted("no host memory for " + std::to_string(type.bytes) + " bytes"));
    COLLET_TRY(route.receive(type, data.get()));
    COLLET_TRY(one.buffer->write(0, type.bytes, data.get()));
  }
  return one.buffer->fulfil(nullptr);
}

}  // namespace

Status send_buffers(Client& client, std::span<Buffer* const> buffers, std::span<const collet_transfer> transfers,
                    std::vector<Event*>& out) {
  for (size_t i = 0; i < buffers.size(); ++i) {
    if (!buffers[i]) return invalid_argument("buffer " + std::to_string(i) + " is missing");
    if (&buffers[i]->client() != &client) return invalid_argument("a buffer is another client's");
    COLLET_TRY(check(client, transfers[i], true));
    const uint32_t device = client.processes()->devices()[transfers[i].from].device;
    if (buffers[i]->device() != device)
      return invalid_argument("a buffer on device " + std::to_string(buffers[i]->device()) +
                              " of its process is sent from device " + std::to_string(device));
  }
  std::vector<std::shared_ptr<Sending>> all;
  for (size_t i = 0; i < buffers.size(); ++i) all.push_back(std::make_shared<Sending>(buffers[i], transfers[i]));
  for (const auto& one : all) one->failure = one->buffer->use(one->use);  // the receiver is told, and must not wait
  for (const auto& one : all) {
    one->buffer->retain_for_work();
    one->done = new Event(true);
    one->done->retain();
    out.push_back(one->done);
  }
  for (const auto& one : all) {
    const Status started = start(
        client, [&processes = *client.processes(), one] { one->end(caught([&] { return send(processes, *one); })); });
    if (!started.ok()) one->end(started);
  }
  return ok_status();
}

Status receive_buffers(Client& client, uint32_t space, std::span<const ArrayType* const> types,
                       std::span<const collet_transfer> transfers, std::vector<Buffer*>& out) {
  for (const collet_transfer& transfer : transfers) COLLET_TRY(check(client, transfer, false));
  std::vector<Receiving> all;
  for (size_t i = 0; i < types.size(); ++i) {
    auto made = Buffer::promise(client, client.processes()->devices()[transfers[i].to].device, space, types[i]);
    if (!made.ok()) {
      for (Buffer* const buffer : out) buffer->release();
      return made.status();
    }
    out.push_back(*made);
    all.push_back({*made, transfers[i]});
  }
  for (const Receiving& one : all) one.buffer->retain_for_work();
  for (const Receiving& one : all) {
    const Status started = start(
        client, [&processes = *client.processes(), one] { one.end(caught([&] { return receive(processes, one); })); });
    if (!started.ok()) one.end(started);
  }
  return ok_status();
}

}  // namespace collet::runtime
