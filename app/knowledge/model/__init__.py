"""One neutral model of a job: what it asks for, what it sets, what it starts, what a rank sees."""
