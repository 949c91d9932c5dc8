// Trains of one control segment: greetings, key changes, probes, ACKs, answers to strangers.

#include <algorithm>

#include "link/acks.hpp"
#include "link/trains.hpp"
#include "wire/hello.hpp"

namespace fairlead::link {

bool Trains::serve_control(base::Instant now, Train& train) {
  for (auto& control = context_.agenda.control; !control.empty(); control.pop_front()) {
    Peer& peer = control.front();
    if (peer.sealed && peer.sealed->owes_message) {
      serve_rekey(peer, now, train);
      return true;
    }
    if (peer.owes_hello_ack) {
      serve_hello_ack(peer, now, train);
      return true;
    }
    if (peer.probe_answers_owed != 0) {
      serve_probe_answer(peer, now, train);
      return true;
    }
    if (peer.owes_hello && serve_hello(peer, now, train)) return true;
  }
  return false;
}

void Trains::serve_hello_ack(Peer& peer, base::Instant now, Train& train) {
  peer.owes_hello_ack = false;
  const bool is_for_candidate = peer.candidate.has_value();
  wire::Header header;
  header.timestamp = wire::to_ticks(now);
  header.kind = wire::Kind::hello_ack;
  header.slot = is_for_candidate ? peer.candidate->theirs.slot : peer.theirs.slot;
  header.token = is_for_candidate ? peer.candidate->theirs.token : peer.theirs.token;
  header.flags = wire::Flags::kEchoes;
  header.echo = is_for_candidate ? peer.candidate->hello_timestamp : peer.hello_timestamp;
  greetings_.introduce(header, peer.address);
  if (is_for_candidate && peer.candidate->sealed) {
    header.flags = wire::Flags::kSealed;
    send_control(peer.address, header, peer.candidate->sealed->answer.span(), train);
  } else {
    std::array<std::byte, wire::kHelloBytes> payload;
    wire::encode(greetings_.hello_of(peer, is_for_candidate ? peer.candidate->ours : peer.ours), payload.data());
    send_control(peer.address, header, payload, train);
  }
  note(Last::What::hello_ack, peer);
  ++context_.counters.hello_acks_sent;
}

void Trains::serve_probe_answer(Peer& peer, base::Instant now, Train& train) {
  wire::Header header = header_with_ack(peer, now);
  header.kind = wire::Kind::probe_answer;
  header.sequence = peer.probes_to_answer[--peer.probe_answers_owed];
  send_control(peer.address, header, {}, train);
  note(Last::What::probe_answer, peer);
  last_.probe = header.sequence;
  ++context_.counters.probe_answers_sent;
  if (peer.sealed) sealer_.seal(peer, now, train);
}

/// Returns false if there is no key for the peer; Sessions::greet_again reports that when the hello is due again.
bool Trains::serve_hello(Peer& peer, base::Instant now, Train& train) {
  peer.owes_hello = false;
  wire::Header header;
  header.timestamp = wire::to_ticks(now);
  header.kind = wire::Kind::hello;
  header.token = peer.cookie;
  greetings_.introduce(header, peer.address);
  if (peer.sealed_hello) {
    header.flags = wire::Flags::kSealed;
    send_control(peer.address, header, peer.sealed_hello->message.span(), train);
  } else if (greetings_.are_sealed_to(peer)) {
    return false;
  } else {
    std::array<std::byte, wire::kHelloBytes> payload;
    wire::encode(greetings_.hello_of(peer, peer.ours), payload.data());
    send_control(peer.address, header, payload, train);
  }
  note(Last::What::hello, peer);
  ++context_.counters.hellos_sent;
  return true;
}

void Trains::serve_rekey(Peer& peer, base::Instant now, Train& train) {
  SealedSession& session = *peer.sealed;
  session.owes_message = false;
  ++session.times_sent;
  wire::Header header = header_with_ack(peer, now);
  header.kind = session.is_message_first() ? wire::Kind::rekey : wire::Kind::rekey_answer;
  send_control(peer.address, header, session.message.span(), train);
  note(Last::What::rekey, peer);
  ++(session.is_message_first() ? context_.counters.rekeys_sent : context_.counters.rekey_answers_sent);
  sealer_.seal(peer, now, train);
}

void Trains::serve_ack(Peer& peer, base::Instant now, Train& train) {
  if (peer.mtu.wanted() != 0) [[unlikely]]
    return serve_probe(peer, now, train);
  wire::Header header = header_with_ack(peer, now);
  header.kind = wire::Kind::ack;
  if (peer.granted != Peer::kNoBound && peer.has_bulk_queued()) [[unlikely]]
    header.flags |= wire::Flags::kAsks;
  std::array<std::uint64_t, wire::kAckWordsMax> words{};
  const std::uint32_t all = peer.received.bitmap_words();
  const std::uint32_t further = std::min<std::uint32_t>(all > 1 ? all - 1 : 0, wire::kAckWordsMax);
  for (std::uint32_t i = 0; i < further; ++i) words[i] = peer.received.bitmap(i + 1);
  send_control(peer.address, header, std::as_bytes(std::span(words).first(further)), train);
  note(Last::What::ack, peer);
  peer.ack.is_at_once = false;
  Acks::settle(peer);
  peer.ack_hook.unlink();
  ++context_.counters.acks_sent;
  if (peer.sealed) [[unlikely]]
    sealer_.seal(peer, now, train);
}

void Trains::serve_probe(Peer& peer, base::Instant now, Train& train) {
  static std::array<std::byte, wire::kDatagramSizeMost> nothing{};
  // A short probe is only its header, so its tag makes it longer.
  const std::uint32_t wanted = peer.mtu.wanted();
  const std::uint32_t size = std::max(wanted - peer.tag_bytes, static_cast<std::uint32_t>(wire::kSegmentHeaderBytes));
  wire::Header header = header_with_ack(peer, now);
  header.kind = wire::Kind::probe;
  header.sequence = peer.mtu.number();
  wire::encode(header, control_bytes_.data());
  const iovec rest{nothing.data(), size - wire::kSegmentHeaderBytes};
  const std::span head = std::span(control_bytes_).first(wire::kSegmentHeaderBytes);
  wire::add_checksum(head, {&rest, 1});
  train.pieces[train.piece_count++] = {head.data(), head.size()};
  if (rest.iov_len != 0) train.pieces[train.piece_count++] = rest;
  train.to = peer.address;
  train.datagram_size = size;
  train.bytes = size;
  train.datagrams = 1;
  note(Last::What::probe, peer);
  last_.probe_bytes = wanted;
  peer.mtu.on_sent();
  Acks::settle(peer);
  if (peer.ack.is_at_once || peer.mtu.wanted() != 0) {
    context_.agenda.queue_ack(peer);
  }
  ++context_.counters.probes_sent;
  ++context_.counters.trains_sent;
  ++context_.counters.datagrams_sent;
  context_.counters.bytes_sent += size;
  if (peer.sealed) sealer_.seal(peer, now, train);
}

bool Trains::serve_stray(base::Instant now, Train& train) {
  const auto stray = strangers_.take();
  was_stray_ = stray.has_value();
  if (!stray) return false;
  wire::Header header = stray->header();
  header.timestamp = wire::to_ticks(now);
  static_assert(wire::kRetryBytes == wire::kRefusedBytes);
  std::array<std::byte, wire::kRetryBytes> word;
  std::size_t word_bytes = 0;
  if (stray->kind == wire::Kind::hello_retry || stray->kind == wire::Kind::hello_refused) {
    stray->kind == wire::Kind::hello_retry ? wire::encode_retry(stray->word, word.data())
                                           : wire::encode_refused(stray->word, word.data());
    word_bytes = word.size();
  }
  if (stray->sealed) {
    std::ranges::copy(*stray->sealed, control_bytes_.begin());
    hang_control(stray->to, stray->sealed->size(), train);
  } else {
    send_control(stray->to, header, std::span(word).first(word_bytes), train);
  }
  last_.what = Last::What::stray;
  last_.stray = *stray;
  ++strangers_.sent_count(stray->kind);
  return true;
}

void Trains::send_control(const base::SocketAddress& to, const wire::Header& header, std::span<const std::byte> payload,
                          Train& train) {
  const std::size_t size = wire::kSegmentHeaderBytes + payload.size();
  wire::encode(header, control_bytes_.data());
  std::ranges::copy(payload, control_bytes_.begin() + wire::kSegmentHeaderBytes);
  wire::add_checksum(std::span(control_bytes_).first(size), {});
  hang_control(to, size, train);
}

/// Makes a train of the datagram in control_bytes_.
void Trains::hang_control(const base::SocketAddress& to, std::size_t size, Train& train) {
  train.add(control_bytes_.data(), size);
  train.to = to;
  train.datagram_size = static_cast<std::uint32_t>(size);
  train.datagrams = 1;
  train.bytes = static_cast<std::uint32_t>(size);
  ++context_.counters.trains_sent;
  ++context_.counters.datagrams_sent;
  context_.counters.bytes_sent += size;
}

}  // namespace fairlead::link
