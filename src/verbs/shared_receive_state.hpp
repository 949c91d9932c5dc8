#pragma once

#include <fairlead/verbs/queue_pair.hpp>

#include "verbs/domain_state.hpp"
#include "verbs/queue_state.hpp"
#include "verbs/xrc_domain_state.hpp"

namespace fairlead::verbs {

struct SharedReceiveState {
  ~SharedReceiveState() {
    ContextState& context = *domain->context;
    if (!context.is_dead()) {
      if (is_open) context.pair_core->close_receive_queue(receives);
      context.event_owners.remove(number_in_context, *context.events);
    }
    if (xrc_domain) {
      xrc_domain->members.drop();
      queue->users.drop();
    }
    domain->members.drop();
    context.shared_receives.give();
  }

  std::shared_ptr<DomainState> domain;
  qp::ReceiveQueueHandle receives;
  bool is_open = false;
  std::uint64_t number_in_context = 0;
  SharedReceiveOptions options;
  std::uint32_t xrc_number = 0;
  std::shared_ptr<XrcDomainState> xrc_domain;  // for XRC, together with `queue`
  std::shared_ptr<QueueState> queue;
  UseCount users;
};

}  // namespace fairlead::verbs
