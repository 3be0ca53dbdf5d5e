// SPDX-License-Identifier: Apache-2.0
#include "sdk/runtime/processes/mpi/link.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

namespace collet::mpi {
namespace {

constexpr unsigned kMostPieces = 4;  // of a message that MPI has at once
constexpr size_t kMostKept = 16;     // buffers
constexpr int kMostProbes = 8;       // messages that begin in one progress()

}  // namespace

Link::Link(Library& library, uint64_t piece, uint32_t timeout_ms)
    : library_(library), piece_(piece), sent_(static_cast<size_t>(library.size())) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(timeout_ms);
  Handle request = 0;
  {
    const std::lock_guard lock(library_.lock());
    request = library_.start_copy(communicator_);
  }
  while (true) {
    {
      const std::lock_guard lock(library_.lock());
      if (library_.done(request)) return;
    }
    if (std::chrono::steady_clock::now() >= end) {
      library_.abandon();
      throw Error(COLLET_DEADLINE_EXCEEDED, "not all processes of MPI open the transport");
    }
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
}

std::vector<char> Link::take_buffer(uint64_t bytes) {
  for (auto& one : kept_)
    if (one.capacity() >= bytes) {
      std::swap(one, kept_.back());
      std::vector<char> out = std::move(kept_.back());
      kept_.pop_back();
      out.resize(bytes);
      return out;
    }
  std::vector<char> out(bytes);
  return out;
}

void Link::keep_buffer(std::vector<char> buffer) {
  if (kept_.size() < kMostKept) kept_.push_back(std::move(buffer));
}

// Returns whether all pieces have been started.
bool Link::start_pieces(Sending& message) {
  while (message.next < message.bytes && message.pieces < kMostPieces) {
    const uint64_t bytes = std::min(piece_, message.bytes - message.next);
    Piece& piece = out_.emplace_back();
    piece.message = &message;
    piece.buffer = take_buffer(sizeof(Header) + bytes);
    const Header header = {message.tag, message.bytes, message.sequence, message.next};
    std::memcpy(piece.buffer.data(), &header, sizeof header);
    std::memcpy(piece.buffer.data() + sizeof header, message.data + message.next, bytes);
    message.next += bytes;
    ++message.pieces;
    piece.request = library_.send(piece.buffer.data(), piece.buffer.size(), message.to, communicator_);
  }
  return message.next == message.bytes;
}

void Link::send(Sending& message) {
  message.sequence = sent_[static_cast<size_t>(message.to)]++;
  if (!start_pieces(message)) sends_.push_back(&message);
}

void Link::post(int to, uint64_t tag, const void* data, uint64_t bytes) {
  Sending& message = posts_.emplace_back(Sending{.to = to, .tag = tag, .data = nullptr, .bytes = bytes});
  message.copy.assign(static_cast<const char*>(data), static_cast<const char*>(data) + bytes);
  message.data = message.copy.data();
  send(message);
}

void Link::receive(Receiving& message) {
  const std::pair<int, uint64_t> key(message.from, message.tag);
  const auto found = unclaimed_.find(key);
  if (found == unclaimed_.end()) {
    wanted_[key].push_back(&message);
    return;
  }
  const std::shared_ptr<Coming> coming = found->second.front();
  found->second.pop_front();
  if (found->second.empty()) unclaimed_.erase(found);
  coming->target = &message;
  if (coming->received == coming->bytes) finish(coming);
}

void Link::give_up(Sending& message) {
  std::erase(sends_, &message);
  for (Piece& piece : out_)
    if (piece.message == &message) piece.message = nullptr;
}

void Link::give_up(Receiving& message) {
  if (message.is_done) return;
  const auto found = wanted_.find({message.from, message.tag});
  if (found != wanted_.end()) {
    std::erase(found->second, &message);
    if (found->second.empty()) wanted_.erase(found);
  }
  for (auto& [key, coming] : coming_)
    if (coming->target == &message) {
      coming->target = nullptr;
      coming->is_unwanted = true;
    }
}

void Link::listen(uint64_t tag, std::function<void(int from, std::vector<char> data)> function) {
  listeners_[tag] = std::move(function);
}

// Puts a message that has come completely where it is waited for.
void Link::finish(const std::shared_ptr<Coming>& message) {
  if (!message->target) return;
  if (message->bytes != message->target->bytes)
    throw Error(COLLET_FAILED_PRECONDITION, "process sent " + std::to_string(message->bytes) + " bytes where " +
                                                std::to_string(message->target->bytes) + " are waited for");
  if (!message->data.empty()) std::memcpy(message->target->data, message->data.data(), message->bytes);
  message->target->is_done = true;
}

// Takes a piece that has come.
void Link::take(const std::vector<char>& buffer, int from) {
  Header header{};
  std::memcpy(&header, buffer.data(), sizeof header);
  const char* const data = buffer.data() + sizeof header;
  const uint64_t bytes = buffer.size() - sizeof header;
  const std::pair<int, uint64_t> sequence(from, header.sequence);
  std::shared_ptr<Coming> message;
  if (header.offset > 0) {
    message = coming_[sequence];
  } else {
    message = std::make_shared<Coming>(Coming{.from = from, .tag = header.tag, .bytes = header.bytes});
    const auto wanted = wanted_.find({from, header.tag});
    if (wanted != wanted_.end()) {
      message->target = wanted->second.front();
      wanted->second.pop_front();
      if (wanted->second.empty()) wanted_.erase(wanted);
    } else if (!listeners_.contains(header.tag)) {
      unclaimed_[{from, header.tag}].push_back(message);
    }
    if (header.bytes > bytes) coming_[sequence] = message;
  }
  // A message that was not waited for when it began is in memory of its own to the end.
  if (message->target && message->data.empty() && header.bytes == message->target->bytes) {
    std::memcpy(message->target->data + header.offset, data, bytes);
  } else if (!message->is_unwanted) {
    message->data.resize(header.bytes);
    std::memcpy(message->data.data() + header.offset, data, bytes);
  }
  message->received += bytes;
  if (message->received < header.bytes) return;
  coming_.erase(sequence);
  const auto listener = listeners_.find(header.tag);
  if (listener != listeners_.end()) return listener->second(from, std::move(message->data));
  finish(message);
}

void Link::progress() {
  for (auto it = out_.begin(); it != out_.end();) {
    if (!library_.done(it->request)) {
      ++it;
      continue;
    }
    if (it->message) --it->message->pieces;
    keep_buffer(std::move(it->buffer));
    it = out_.erase(it);
  }
  std::erase_if(sends_, [this](Sending* message) { return start_pieces(*message); });
  std::erase_if(posts_, [](const Sending& message) { return message.is_done(); });
  int from = 0;
  uint64_t bytes = 0;
  for (int i = 0; i < kMostProbes && library_.probe(communicator_, from, bytes); ++i) {
    if (bytes < sizeof(Header)) throw Error(COLLET_INTERNAL, "a message of another kind came by MPI");
    Piece& piece = in_.emplace_back();
    piece.from = from;
    piece.buffer = take_buffer(bytes);
    piece.request = library_.receive(piece.buffer.data(), bytes, from, communicator_);
  }
  // In the order in which they came: a piece is taken after those before it from the same process.
  std::vector<bool> waits(static_cast<size_t>(library_.size()));
  for (auto it = in_.begin(); it != in_.end();) {
    const auto process = static_cast<size_t>(it->from);
    if (waits[process] || !library_.done(it->request)) {
      waits[process] = true;
      ++it;
      continue;
    }
    take(it->buffer, it->from);
    keep_buffer(std::move(it->buffer));
    it = in_.erase(it);
  }
}

}  // namespace collet::mpi
