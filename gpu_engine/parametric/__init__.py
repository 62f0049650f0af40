"""The value of a flow as a function of one factor that scales some capacities, supplies or demands."""
