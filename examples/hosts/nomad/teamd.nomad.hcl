# A job in which members of a team run. The image is that of ../container.
job "teamd" {
  type = "service"

  group "members" {
    count = 1

    # The files of the daemon must survive a restart on the same client.
    ephemeral_disk {
      sticky = true
      size   = 10000
    }

    # Nomad must not start the members on another client while this one has no contact.
    disconnect {
      lost_after = "24h"
      replace    = false
    }

    task "members" {
      driver       = "docker"
      kill_timeout = "20s"

      config {
        image = "registry.example.com/teamd:latest"
        init  = true
      }

      env {
        TEAMD_ROOT     = "/alloc/data/root"
        XDG_STATE_HOME = "/alloc/data/state"
      }

      resources {
        cpu    = 2000
        memory = 4096
      }
    }
  }
}
